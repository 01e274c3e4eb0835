/* Runs the command that the command line names. Called by main() in luasample.c. */
#include "cli/command.h"
#include "cli/list.h"
#include "cli/options.h"
#include "cli/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct ls_command *find_command(const char *name)
{
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++)
                if (!strcmp((*cmd)->name, name))
                        return *cmd;
        return NULL;
}

static const char *similar_command(const char *name)
{
        const char *names[33];
        unsigned n = 0;

        for (const struct ls_command *const *cmd = ls_commands; *cmd && n < 31; cmd++)
                names[n++] = (*cmd)->name;
        names[n++] = "help";
        names[n] = NULL;
        return ls_suggest(name, names);
}

static int unknown_command(const char *name)
{
        const char *near = similar_command(name);

        if (near)
                ls_error("'%s' is not a luasample command; did you mean '%s'? (luasample --help "
                         "lists all)",
                         name, near);
        else
                ls_error("'%s' is not a luasample command (luasample --help lists all)", name);
        return LS_EXIT_USAGE;
}

static void print_help(FILE *out)
{
        fprintf(out, "usage: luasample COMMAND [OPTION...]\n\n"
                     "A sampling profiler for LuaJIT programs.\n\nCommands:\n");
        for (const struct ls_command *const *cmd = ls_commands; *cmd; cmd++)
                fprintf(out, "  %-9s %s\n", (*cmd)->name, (*cmd)->summary);
        fprintf(out, "  %-9s %s\n", "help", "show the manual of a command");
        fprintf(out, "\n"
                     "  --version               show the version, and what was compiled in\n"
                     "  -h, --help              show this help\n"
                     "  --completion SHELL      print a completion script for bash, zsh or fish\n"
                     "\n"
                     "The manual of a command: luasample help COMMAND\n"
                     "\n"
                     "Example:\n"
                     "  luasample record -- luajit app.lua\n"
                     "  luasample report\n");
}

static int print_version(void)
{
        printf("luasample version %s\n", LS_VERSION);
        printf("agent:     %s\n", LS_AGENT_DIR "/libsample.so");
        printf("HTTP:      %s\n", *LS_WITH_HTTP ? LS_WITH_HTTP : "no (built without it)");
        printf("libraries: %s\n", LS_WITH);
        printf("compiler:  %s\n", LS_COMPILER);
        return 0;
}

/* A page beside the program: in the build directory, or in the tree that it was installed to. */
static int find_page(const char *page, char *path, size_t size)
{
        static const char *const places[] = {
                "man/%s", "../share/man/man1/%s", "../share/man/man1/%s.gz",
        };
        char exe[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
        char *slash;

        if (n <= 0)
                return 0;
        exe[n] = '\0';
        slash = strrchr(exe, '/');
        if (!slash)
                return 0;
        slash[1] = '\0';
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                char name[128], rest[160];

                snprintf(name, sizeof(name), "%s.1", page);
                snprintf(rest, sizeof(rest), places[i], name);
                if ((size_t)snprintf(path, size, "%s%s", exe, rest) < size &&
                    access(path, R_OK) == 0)
                        return 1;
        }
        return 0;
}

/* Copies what man writes to stdout. Stops at a failed write, which ls_finish_stdout reports. */
static void copy_to_stdout(int fd)
{
        char buf[4096];
        ssize_t n;

        while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
                if (n > 0 && fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
                        break;
}

static void exec_man(const char *what, int quiet, int out)
{
        if (quiet && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
                _exit(127);
        if (out >= 0 && dup2(out, STDOUT_FILENO) < 0)
                _exit(127);
        if (quiet)
                execlp("man", "man", "-w", what, (char *)NULL);
        else
                execlp("man", "man", what, (char *)NULL);
        _exit(127);
}

/* Runs man(1) on a file or a page name; quiet only asks whether there is such a page. On a terminal
 * man starts the pager itself. Elsewhere its output goes through us: it ends with status 0 when
 * stdout is full. Returns its exit status, -1 when it could not be run. */
static int run_man(const char *what, int quiet)
{
        int status, fds[2] = { -1, -1 };
        pid_t pid;

        fflush(stdout);
        if (!quiet && !isatty(STDOUT_FILENO) && pipe2(fds, O_CLOEXEC) < 0)
                return -1;
        pid = fork();
        if (pid == 0)
                exec_man(what, quiet, fds[1]);
        if (fds[0] >= 0) {
                close(fds[1]);
                if (pid > 0)
                        copy_to_stdout(fds[0]);
                close(fds[0]);
        }
        if (pid < 0)
                return -1;
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -1;
        if (ferror(stdout))
                return 0;               /* a page was there: no second try */
        if (!WIFEXITED(status) || WEXITSTATUS(status) == 127)
                return -1;
        return WEXITSTATUS(status);
}

/* The manual page when man(1) and the page are there, else the text of --help. */
static int show_help(const char *name)
{
        const struct ls_command *cmd = NULL;
        char page[96], path[PATH_MAX];

        if (name && strcmp(name, "luasample") && strcmp(name, "help")) {
                cmd = find_command(name);
                if (!cmd)
                        return unknown_command(name);
                snprintf(page, sizeof(page), "luasample-%s", cmd->name);
        } else {
                snprintf(page, sizeof(page), "luasample");
        }
        if (name) {
                if (find_page(page, path, sizeof(path)) && run_man(path, 0) == 0)
                        return 0;
                if (run_man(page, 1) == 0 && run_man(page, 0) == 0)
                        return 0;
        }
        if (cmd)
                ls_command_help(cmd, stdout);
        else
                print_help(stdout);
        return 0;
}

static int print_completion(const char *shell)
{
        if (!shell || ls_print_completion(shell, stdout) < 0) {
                ls_error("--completion: %s; it takes bash, zsh or fish",
                         shell ? "unknown shell" : "no shell given");
                return LS_EXIT_USAGE;
        }
        return 0;
}

static int run(int argc, const char **argv)
{
        const char *name = argc > 1 ? argv[1] : NULL;
        const struct ls_command *cmd;

        if (!name) {
                print_help(stderr);
                return LS_EXIT_USAGE;
        }
        if (!strcmp(name, "--version") || !strcmp(name, "-V"))
                return print_version();
        if (!strcmp(name, "--help") || !strcmp(name, "-h"))
                return show_help(NULL);
        if (!strcmp(name, "help"))
                return show_help(argc > 2 ? argv[2] : NULL);
        if (!strcmp(name, "--completion"))
                return print_completion(argc > 2 ? argv[2] : NULL);
        if (!strcmp(name, "--list-options")) {
                ls_list_options(stdout);
                return 0;
        }
        if (name[0] == '-') {
                ls_error("unknown option %s (usage: luasample COMMAND [OPTION...]; luasample "
                         "--help lists all)",
                         name);
                return LS_EXIT_USAGE;
        }
        cmd = find_command(name);
        if (!cmd)
                return unknown_command(name);
        return cmd->run(argc - 1, argv + 1);
}

int ls_main(int argc, const char **argv)
{
        setlocale(LC_CTYPE, "");
        return ls_finish_stdout(run(argc, argv));
}
