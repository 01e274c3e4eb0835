/* Places that the daemon and its clients share: see places.h. */
#include "cli/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/escape.h"

/* An absolute path of the environment, or fallback below the home. NULL = neither. */
static char *user_place(const char *variable, const char *fallback, const char *rest)
{
        const char *base = getenv(variable), *home = getenv("HOME");

        if (base && *base == '/')
                return ls_print("%s/%s", base, rest);
        if (!fallback || !home || *home != '/')
                return NULL;
        return ls_print("%s/%s/%s", home, fallback, rest);
}

char *ls_place_config(int user)
{
        return user ? user_place("XDG_CONFIG_HOME", ".config", "luasample/daemon.conf")
                    : strdup("/etc/luasample/daemon.conf");
}

char *ls_place_store(int user)
{
        return user ? user_place("XDG_STATE_HOME", ".local/state", "luasample")
                    : strdup("/var/lib/luasample");
}

char *ls_place_socket(int user)
{
        return user ? user_place("XDG_RUNTIME_DIR", NULL, "luasample/control")
                    : strdup("/run/luasample/control");
}

static char *place_of(const char *variable, char *(*place)(int user))
{
        const char *named = getenv(variable);
        char *own;

        if (named)
                return *named ? strdup(named) : NULL;
        own = geteuid() ? place(1) : NULL;
        if (own && access(own, F_OK) == 0)
                return own;
        free(own);
        return place(0);
}

char *ls_place_of_store(void)
{
        return place_of("LUASAMPLE_STORE", ls_place_store);
}

char *ls_place_of_socket(void)
{
        return place_of("LUASAMPLE_SOCKET", ls_place_socket);
}
