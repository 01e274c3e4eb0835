/* Names and lines of functions: of this program, of files without symbols, with separate debug
 * files, from a debuginfod server of our own, of the vdso and the kernel. Uses objcopy, as gcc
 * does. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/worker/symbols.h"
#include "record/worker/symbols_demangle.h"
#include "record/worker/symbols_kernel.h"

/* As a C++ and a Rust compiler would name them. */
int ls_test_cxx(int x) __asm__("_ZN3geo5shape4areaEi");
__attribute__((noinline)) int ls_test_cxx(int x)
{
        return x * 7;
}

int ls_test_plain(int x);
__attribute__((noinline)) int ls_test_plain(int x)
{
        return x * 5;
}

static char self[PATH_MAX], dir[] = "/tmp/luasample-symbols-XXXXXX";

/* The offset in the file of a symbol, from its symbol table. */
static uint64_t offset_of(const char *path, const char *symbol)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        uint64_t found = 0;
        Elf_Scn *scn = NULL;
        Elf *elf;

        elf_version(EV_CURRENT);
        elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
        assert_non_null(elf);
        while (!found && (scn = elf_nextscn(elf, scn))) {
                Elf_Data *data = elf_getdata(scn, NULL);
                GElf_Shdr sh, code;
                GElf_Sym sym;

                if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB)
                        continue;
                for (int i = 0; gelf_getsym(data, i, &sym); i++)
                        if (!strcmp(elf_strptr(elf, sh.sh_link, sym.st_name), symbol) &&
                            sym.st_value && gelf_getshdr(elf_getscn(elf, sym.st_shndx), &code))
                                found = sym.st_value - code.sh_addr + code.sh_offset;
        }
        elf_end(elf);
        close(fd);
        assert_true(found > 0);
        return found;
}

static void shell(const char *format, ...)
{
        char command[4 * PATH_MAX];
        va_list args;

        va_start(args, format);
        vsnprintf(command, sizeof(command), format, args);
        va_end(args);
        assert_int_equal(system(command), 0);
}

static int group_setup(void **state)
{
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        (void)state;
        unsetenv("DEBUGINFOD_URLS");
        return n > 0 && mkdtemp(dir) ? 0 : -1;
}

static int group_teardown(void **state)
{
        (void)state;
        shell("rm -r %s", dir);
        return 0;
}

static void expect(const char *path, uint64_t offset, const char *want)
{
        struct ls_symbols *s = ls_symbols_open(path, NULL, 0);
        char name[512] = "(none)";

        assert_non_null(s);
        assert_int_equal(ls_symbols_find(s, offset, name, sizeof(name)), want ? 0 : -ENOENT);
        if (want)
                assert_string_equal(name, want);
        ls_symbols_close(s);
}

static void names_are_as_people_write_them(void **state)
{
        static const struct { const char *symbol, *name;
        } names[] = {
                { "main", "main" },
                { "memcpy@@GLIBC_2.14", "memcpy" },
                { "", "" },
                { "_ZN3foo3barEi", "foo::bar" },
                { "_ZNSt6vectorIiSaIiEE9push_backERKi",
                  "std::vector<int, std::allocator<int> >::push_back" },
                { "_ZN3fooC1Ev", "foo::foo" },
                { "_ZN3foopLERKS_", "foo::operator+=" },
                { "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                  "core::fmt::Write::write_fmt" },
                { "_RNvCsbmNqQUJIY6D_7mycrate3foo", "mycrate::foo" },
                { "_RNvMs_NtCs1234_7mycrate3barNtB4_3Foo3new", "<mycrate::bar::Foo>::new" },
                { "lj_gc_step.cold", "lj_gc_step" },
                { "gc_sweep.constprop.0", "gc_sweep" },
                { "rehash.isra.0.part.1", "rehash" },
                { "_ZN3foo3barEi.cold", "foo::bar" },
                { "_ZN", "_ZN" },
                { "_R", "_R" },
                { ".cold", ".cold" },
                { "a.parts", "a.parts" },
        };
        static char huge[100000];
        char name[512];

        (void)state;
        for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
                ls_symbols_demangle(names[i].symbol, name, sizeof(name));
                assert_string_equal(name, names[i].name);
        }
        memset(huge, 'a', sizeof(huge) - 1);
        memcpy(huge, "_ZN9", 4);
        ls_symbols_demangle(huge, name, sizeof(name));
        assert_int_equal(strlen(name), sizeof(name) - 1);
        ls_symbols_demangle("_ZN3foo3barEi", name, 4);
        assert_string_equal(name, "foo");
}

static void functions_of_a_file(void **state)
{
        uint64_t plain = offset_of(self, "ls_test_plain");

        (void)state;
        expect(self, plain, "ls_test_plain");
        expect(self, plain + 1, "ls_test_plain");
        expect(self, offset_of(self, "_ZN3geo5shape4areaEi"), "geo::shape::area");
        expect(self, UINT64_MAX, NULL);
        expect(self, 0x7fffffffffff, NULL);
}

/* app without symbols, and what belongs to it in .debug beside it */
static void names_come_from_a_separate_file(void **state)
{
        uint64_t plain = offset_of(self, "ls_test_plain");
        uint8_t id[64], other[64] = { 0 };
        char app[PATH_MAX];
        size_t len;

        (void)state;
        snprintf(app, sizeof(app), "%s/app", dir);
        shell("objcopy -S %s %s", self, app);
        expect(app, plain, NULL);
        len = ls_symbols_build_id(app, id, sizeof(id));
        assert_true(len >= 8);
        assert_null(ls_symbols_open(app, other, len));
        shell("mkdir %s/.debug && objcopy --only-keep-debug %s %s/.debug/app.debug && "
              "objcopy -S --add-gnu-debuglink=%s/.debug/app.debug %s %s",
              dir, self, dir, dir, self, app);
        expect(app, plain, "ls_test_plain");
        shell("rm -r %s/.debug", dir);
}

/* --- a debuginfod server that has one file --- */

static void serve(int listener, const char *want, const char *file)
{
        char request[4096], header[256];

        for (;;) {
                int c = accept(listener, NULL, NULL), found;
                ssize_t n = c < 0 ? -1 : read(c, request, sizeof(request) - 1);
                FILE *f = fopen(file, "re");
                struct stat st;

                if (n <= 0 || !f || fstat(fileno(f), &st) < 0)
                        _exit(1);
                request[n] = 0;
                found = !strncmp(request, want, strlen(want));
                n = snprintf(header, sizeof(header),
                             "HTTP/1.1 %s\r\nContent-Length: %lld\r\nConnection: close\r\n\r\n",
                             found ? "200 OK" : "404 Not Found", found ? (long long)st.st_size : 0);
                if (write(c, header, (size_t)n) < 0)
                        _exit(1);
                while (found && (n = (ssize_t)fread(request, 1, sizeof(request), f)) > 0)
                        if (write(c, request, (size_t)n) < 0)
                                break;
                fclose(f);
                close(c);
        }
}

static pid_t start_server(const char *want, const char *file, int *ret_port)
{
        struct sockaddr_in addr = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t len = sizeof(addr);
        pid_t pid;

        assert_true(listener >= 0 && bind(listener, (struct sockaddr *)&addr, len) == 0 &&
                    listen(listener, 8) == 0 &&
                    getsockname(listener, (struct sockaddr *)&addr, &len) == 0);
        *ret_port = ntohs(addr.sin_port);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                serve(listener, want, file);
        close(listener);
        return pid;
}

static int has_debuginfod(void)
{
        return system("ldconfig -p 2>/dev/null | grep -q libdebuginfod.so.1 || "
                      "/sbin/ldconfig -p | grep -q libdebuginfod.so.1") == 0;
}

static void names_come_from_a_server_that_was_asked_for(void **state)
{
        uint64_t plain = offset_of(self, "ls_test_plain");
        char app[PATH_MAX], debug[PATH_MAX], want[256] = "GET /buildid/", url[64], cache[PATH_MAX];
        uint8_t id[64];
        size_t len;
        pid_t pid;
        int port;

        (void)state;
        if (!has_debuginfod())
                skip();
        snprintf(app, sizeof(app), "%s/served", dir);
        snprintf(debug, sizeof(debug), "%s/of-the-server", dir);
        shell("objcopy -S %s %s && objcopy --only-keep-debug %s %s", self, app, self, debug);
        len = ls_symbols_build_id(app, id, sizeof(id));
        for (size_t i = 0; i < len; i++)
                snprintf(want + strlen(want), 3, "%02x", id[i]);
        strcat(want, "/debuginfo");
        pid = start_server(want, debug, &port);
        snprintf(cache, sizeof(cache), "%s/cache", dir);
        setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
        expect(app, plain, NULL);               /* nobody has asked for it */
        snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
        setenv("DEBUGINFOD_URLS", url, 1);
        expect(app, plain, "ls_test_plain");
        unsetenv("DEBUGINFOD_URLS");
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

static void the_vdso_has_names(void **state)
{
        static const char *const paths[] = { "[vdso]", "linux-vdso.so.1" };

        (void)state;
        for (unsigned i = 0; i < 2; i++) {
                struct ls_symbols *s = ls_symbols_open(paths[i], NULL, 0);
                char name[128];
                int found = 0;

                assert_non_null(s);
                for (uint64_t at = 0; at < 8192; at += 16)
                        if (ls_symbols_find(s, at, name, sizeof(name)) == 0) {
                                assert_memory_equal(name, "[vdso] ", 7);
                                found |= strstr(name, "clock_gettime") != NULL;
                        }
                assert_true(found);
                ls_symbols_close(s);
        }
        assert_false(ls_symbols_is_vdso("/usr/lib/linux-vdso.so.1"));
}

static void the_kernel_has_names_when_it_shows_them(void **state)
{
        struct ls_symbols *s = ls_symbols_open(LS_KERNEL_PATH, NULL, 0);
        struct ls_kernel_symbols *k;
        char path[PATH_MAX], name[64];
        FILE *f;

        (void)state;
        snprintf(path, sizeof(path), "%s/kallsyms", dir);
        f = fopen(path, "we");
        fputs("ffffffff81001000 T startup\nffffffff81000000 t first\nffffffff81002000 d "
              "data\nnonsense\n"
              "ffffffffc0000000 t in_module\t[xfs]\n",
              f);
        fclose(f);
        k = ls_kernel_symbols_open(path);
        assert_non_null(k);
        assert_int_equal(ls_kernel_symbols_find(k, UINT64_C(0xffffffff81000fff), name,
                                                sizeof(name)),
                         0);
        assert_string_equal(name, "first");
        assert_int_equal(ls_kernel_symbols_find(k, UINT64_C(0xffffffff81002001), name,
                                                sizeof(name)),
                         0);
        assert_string_equal(name, "startup");
        assert_int_equal(ls_kernel_symbols_find(k, UINT64_C(0xffffffffc0000001), name,
                                                sizeof(name)),
                         0);
        assert_string_equal(name, "in_module");
        assert_int_equal(ls_kernel_symbols_find(k, UINT64_C(0xffffffff80ffffff), name,
                                                sizeof(name)),
                         -ENOENT);
        ls_kernel_symbols_close(k);
        f = fopen(path, "we");
        fputs("0000000000000000 T startup\n0000000000000000 T other\n", f);
        fclose(f);
        assert_null(ls_kernel_symbols_open(path));
        assert_null(ls_kernel_symbols_open("/nowhere"));
        /* The real one may be shown or hidden. */
        assert_non_null(s);
        assert_int_equal(ls_symbols_find(s, UINT64_C(0x7fff81000000), name, sizeof(name)), 0);
        assert_memory_equal(name, "[kernel]", 8);
        ls_symbols_close(s);
}

static void what_is_no_program_is_refused(void **state)
{
        char path[PATH_MAX];
        uint8_t id[8];
        FILE *f;

        (void)state;
        snprintf(path, sizeof(path), "%s/text", dir);
        f = fopen(path, "we");
        fputs("no ELF file", f);
        fclose(f);
        assert_null(ls_symbols_open(path, NULL, 0));
        assert_null(ls_symbols_open("/nowhere", NULL, 0));
        assert_null(ls_symbols_open(dir, NULL, 0));
        assert_int_equal(ls_symbols_build_id(path, id, sizeof(id)), 0);
        assert_int_equal(ls_symbols_build_id(self, id, 4), 0);
}

/* An open of a FIFO that nobody writes to would not come back. */
static void what_may_wait_for_ever_is_not_opened(void **state)
{
        char app[PATH_MAX];
        uint8_t id[64];

        (void)state;
        snprintf(app, sizeof(app), "%s/fifo", dir);
        assert_int_equal(mkfifo(app, 0600), 0);
        alarm(10);
        assert_null(ls_symbols_open(app, NULL, 0));
        assert_int_equal(ls_symbols_build_id(app, id, sizeof(id)), 0);
        assert_null(ls_symbols_open("/dev/null", NULL, 0));
        alarm(0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_as_people_write_them),
                cmocka_unit_test(functions_of_a_file),
                cmocka_unit_test(names_come_from_a_separate_file),
                cmocka_unit_test(names_come_from_a_server_that_was_asked_for),
                cmocka_unit_test(the_vdso_has_names),
                cmocka_unit_test(the_kernel_has_names_when_it_shows_them),
                cmocka_unit_test(what_is_no_program_is_refused),
                cmocka_unit_test(what_may_wait_for_ever_is_not_opened),
        };

        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
