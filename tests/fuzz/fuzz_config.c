/* libFuzzer target: any bytes as the daemon's configuration. What is taken is within the bounds of
 * options.def; what is not says so. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "daemon/config.h"
#include "tests/fuzz/touch.h"

static unsigned said;

static void note(void *ctx, const char *text)
{
        (void)ctx;
        must(*text != 0);
        said++;
}

static void check_config(const struct ls_config *c)
{
        must(c->store && *c->store == '/' && c->socket && *c->socket == '/' && c->http_socket &&
             *c->http_socket == '/');
        must(c->chunk_ns >= 1000000000 && c->max_targets >= 1 && c->max_targets <= 256 &&
             c->min_free <= 90);
        must(!c->http_certificate == !c->http_key);
        for (unsigned i = 0; i < c->n_services; i++)
                must(ls_service_name_ok(c->services[i].name) &&
                     c->services[i].interval_ns >= 1000000);
        for (unsigned i = 0; i < c->n_rules; i++)
                must(ls_service_name_ok(c->rules[i].name) &&
                     (c->rules[i].cpu || c->rules[i].rss || c->rules[i].exit ||
                      c->rules[i].mark.n || c->rules[i].counter.n || c->rules[i].stall_ns));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int fd = memfd_create("config", MFD_CLOEXEC), error;
        struct ls_config c;
        char path[64];

        must(fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, data, size) == (ssize_t)size);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        said = 0;
        ls_error_to(note, NULL);
        error = ls_config_read(path, 1, 0, &c);
        ls_error_to(NULL, NULL);
        must(error ? said > 0 : said == 0);
        if (!error)
                check_config(&c);
        ls_config_done(&c);
        close(fd);
        return 0;
}
