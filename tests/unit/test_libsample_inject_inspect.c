/* libsample/inject/inspect.c: what real and hand-made files are, and that no damaged file does
 * harm. */
#include "libsample/inject/inspect.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];            /* of this run, removed at the end */

static const char *path_of(const char *name)
{
        static char path[2][256];
        static int which;

        which = !which;
        snprintf(path[which], sizeof path[which], "%s/%s", dir, name);
        return path[which];
}

static const char *write_file(const char *name, const void *bytes, size_t n, mode_t mode)
{
        const char *path = path_of(name);
        FILE *f = fopen(path, "wb");

        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        fclose(f);
        assert_int_equal(chmod(path, mode), 0);
        return path;
}

static const char *script(const char *name, const char *text)
{
        return write_file(name, text, strlen(text), 0755);
}

static struct ls_image inspect(const char *name, unsigned flags)
{
        static struct ls_image image;

        memset(&image, 0xaa, sizeof image);
        errno = 77;
        ls_image_inspect(name, dir, flags, &image);
        assert_int_equal(errno, 77);
        return image;
}

/* A small ELF file: one PT_LOAD over all of it, PT_INTERP and PT_DYNAMIC. */
struct elf_file {
        Elf64_Ehdr eh;
        Elf64_Phdr ph[3];
        char interpreter[32];
        Elf64_Dyn dyn[8];
        char strings[64];
        Elf64_Sym syms[3];
        uint32_t hash[2 + 1 + 3];       /* DT_HASH: one bucket */
        char text[32];
};

static struct elf_file make_elf(const char *interpreter, const char *needed, const char *symbol)
{
        struct elf_file f = {
                .eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN,
                        .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = offsetof(struct elf_file, ph),
                        .e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3 },
                .ph = {
                        { .p_type = PT_LOAD, .p_filesz = sizeof f, .p_memsz = sizeof f, .p_flags = PF_R },
                        { .p_type = interpreter ? PT_INTERP : PT_NULL,
                          .p_offset = offsetof(struct elf_file, interpreter), .p_filesz = sizeof f.interpreter },
                        { .p_type = PT_DYNAMIC, .p_offset = offsetof(struct elf_file, dyn), .p_filesz = sizeof f.dyn },
                },
                .dyn = {
                        { DT_SYMTAB, { offsetof(struct elf_file, syms) } },
                        { DT_STRTAB, { offsetof(struct elf_file, strings) } },
                        { DT_STRSZ, { sizeof f.strings } },
                        { DT_HASH, { offsetof(struct elf_file, hash) } },
                        { needed ? DT_NEEDED : DT_DEBUG, { 1 } },
                },
                .syms = { { 0 }, { .st_name = 32, .st_shndx = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) } },
                .hash = { 1, 3, symbol ? 1 : 0, 0, 2, 0 },
        };

        snprintf(f.interpreter, sizeof f.interpreter, "%s", interpreter ? interpreter : "");
        snprintf(f.strings + 1, 31, "%s", needed ? needed : "");
        snprintf(f.strings + 32, 32, "%s", symbol ? symbol : "");
        return f;
}

#define GLIBC "/lib64/ld-linux-x86-64.so.2"

static enum ls_image_kind kind_of(const struct elf_file *f)
{
        return inspect(write_file("elf", f, sizeof *f, 0755), 0).kind;
}

static void test_kinds(void **state)
{
        struct elf_file f = make_elf(GLIBC, NULL, NULL);

        (void)state;
        assert_int_equal(kind_of(&f), LS_IMAGE_OK);
        f.eh.e_machine = EM_AARCH64;
        assert_int_equal(kind_of(&f), LS_IMAGE_OTHER_ARCH);
        f.eh.e_machine = EM_386;
        f.eh.e_ident[EI_CLASS] = ELFCLASS32;
        assert_int_equal(kind_of(&f), LS_IMAGE_BITS32);
        f.eh.e_machine = EM_X86_64;
        assert_int_equal(kind_of(&f), LS_IMAGE_BITS32);         /* x32 */
        f.eh.e_ident[EI_CLASS] = ELFCLASS64;
        f.eh.e_type = ET_REL;
        assert_int_equal(kind_of(&f), LS_IMAGE_NOT_ELF);
        f = make_elf(NULL, NULL, NULL);
        assert_int_equal(kind_of(&f), LS_IMAGE_STATIC);
        f = make_elf("/lib/ld-musl-x86_64.so.1", NULL, NULL);
        assert_int_equal(kind_of(&f), LS_IMAGE_MUSL);
        f = make_elf("/libexec/ld.so.1", NULL, NULL);
        assert_int_equal(kind_of(&f), LS_IMAGE_OTHER_LIBC);
        f = make_elf(GLIBC, "libasan.so.8", NULL);
        assert_int_equal(kind_of(&f), LS_IMAGE_ASAN);
        f = make_elf(GLIBC, NULL, "__asan_init");
        assert_int_equal(kind_of(&f), LS_IMAGE_ASAN);
        f = make_elf(GLIBC, NULL, "__asan_initialize");
        assert_int_equal(kind_of(&f), LS_IMAGE_OK);
}

static void test_lua_in_it(void **state)
{
        struct elf_file f = make_elf(GLIBC, "libluajit-5.1.so.2", NULL);
        struct ls_image image = inspect(write_file("elf", &f, sizeof f, 0755), LS_INSPECT_TEXT);

        (void)state;
        assert_int_equal(image.needs_luajit, 1);
        assert_int_equal(image.contains_luajit, 0);
        f = make_elf(GLIBC, NULL, "lua_newstate");
        image = inspect(write_file("elf", &f, sizeof f, 0755), LS_INSPECT_TEXT);
        assert_int_equal(image.exports_lua_newstate, 1);
        assert_int_equal(image.has_profiler, 0);
        assert_true(ls_image_has_luajit(&image));
        f.syms[1].st_shndx = SHN_UNDEF;         /* uses it, does not have it */
        image = inspect(write_file("elf", &f, sizeof f, 0755), 0);
        assert_int_equal(image.exports_lua_newstate, 0);
        f = make_elf(GLIBC, NULL, NULL);
        strcpy(f.text, "LuaJIT 2.1.0");
        write_file("elf", &f, sizeof f, 0755);
        assert_int_equal(inspect(path_of("elf"), LS_INSPECT_TEXT).contains_luajit, 1);
        assert_int_equal(inspect(path_of("elf"), 0).contains_luajit, 0);
}

/* The version string may lie across two blocks of the search. */
static void test_text_across_blocks(void **state)
{
        size_t n = 600000;
        char *bytes = calloc(1, n);
        struct elf_file f = make_elf(GLIBC, NULL, NULL);

        (void)state;
        assert_non_null(bytes);
        f.ph[0].p_filesz = n;
        for (int at = (256 << 10) - 12; at <= 256 << 10; at++) {
                memset(bytes, 0, n);
                memcpy(bytes, &f, sizeof f);
                memcpy(bytes + at, "LuaJIT 2.", 9);
                write_file("elf", bytes, n, 0755);
                assert_int_equal(inspect(path_of("elf"), LS_INSPECT_TEXT).contains_luajit, 1);
        }
        free(bytes);
}

static uint64_t bytes_read(void)
{
        unsigned long long n = 0;
        FILE *f = fopen("/proc/self/io", "re");

        assert_int_equal(fscanf(f, "rchar: %llu", &n), 1);
        fclose(f);
        return n;
}

/* Who looks at a file must not be made to read for seconds; what matters of it is read first. */
static void test_large_files(void **state)
{
        struct elf_file f = make_elf(GLIBC, NULL, NULL);
        const uint64_t code = UINT64_C(1) << 30;
        uint64_t before;
        int fd;

        (void)state;
        f.ph[0] = (Elf64_Phdr){
                .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = code, .p_memsz = code
        };
        write_file("elf", &f, sizeof f, 0755);
        assert_int_equal(truncate(path_of("elf"), (off_t)code + 4096), 0);
        before = bytes_read();
        assert_int_equal(inspect(path_of("elf"), LS_INSPECT_TEXT).contains_luajit, 0);
        assert_in_range(bytes_read() - before, 1 << 20, 65 << 20);
        f.ph[2] = (Elf64_Phdr){ .p_type = PT_LOAD,
                                .p_flags = PF_R,
                                .p_offset = code,
                                .p_filesz = 4096,
                                .p_memsz = 4096 };
        fd = open(path_of("elf"), O_RDWR | O_CLOEXEC);
        assert_int_equal(pwrite(fd, &f, sizeof f, 0), sizeof f);
        assert_int_equal(pwrite(fd, "LuaJIT 2.1", 10, (off_t)code + 100), 10);
        close(fd);
        assert_int_equal(inspect(path_of("elf"), LS_INSPECT_TEXT).contains_luajit, 1);
}

static void test_debian_luajit(void **state)
{
        struct ls_image image;

        (void)state;
        if (access("/usr/bin/luajit", X_OK) < 0)
                skip();
        ls_image_inspect("luajit", "/usr/bin", LS_INSPECT_TEXT, &image);
        assert_int_equal(image.kind, LS_IMAGE_OK);
        assert_true(ls_image_has_luajit(&image));
        assert_string_equal(image.file, "/usr/bin/luajit");
        ls_image_inspect("#", "/usr/bin:/bin", 0, &image);
        assert_int_equal(image.kind, LS_IMAGE_MISSING);
}

static void test_setuid(void **state)
{
        struct elf_file f = make_elf(GLIBC, NULL, NULL);
        const char *path = write_file("elf", &f, sizeof f, 04755);

        (void)state;
        assert_int_equal(inspect(path, 0).kind, LS_IMAGE_OK);   /* of the same user: nothing
                                                                 * changes */
        if (getuid() != 0)
                skip();
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(chmod(path, 04755), 0);
        assert_int_equal(inspect(path, 0).kind, LS_IMAGE_SETUID);
        assert_int_equal(chmod(path, 02755), 0);
        assert_int_equal(inspect(path, 0).kind, LS_IMAGE_SETUID);
        assert_int_equal(chmod(path, 02745), 0);                /* mandatory locking, not setgid */
        assert_int_equal(inspect(path, 0).kind, LS_IMAGE_OK);
}

static void test_scripts(void **state)
{
        struct elf_file f = make_elf(GLIBC, NULL, "lua_newstate");
        char text[256], sentence[512];
        struct ls_image image;
        static const struct { const char *line; int found; } env[] = {
                { "#!/usr/bin/env lj\n", 1 },
                { "#! /usr/bin/env  lj  \n", 1 },
                { "#!/usr/bin/env -S lj -e x\n", 1 },
                { "#!/usr/bin/env -S LUA_PATH=x -i lj\n", 1 },
                { "#!/usr/bin/env -S -u HOME lj\n", 1 },
                { "#!/usr/bin/env -i\n", 0 },
                { "#!/usr/bin/env lj -joff\n", 0 },             /* one argument with a space in
                                                                 * it */
                { "#!/usr/bin/env nosuchprogram\n", 0 },
        };

        (void)state;
        write_file("lj", &f, sizeof f, 0755);
        snprintf(text, sizeof text, "#!%s/lj -joff\nprint(1)\n", dir);
        image = inspect(script("a.lua", text), 0);
        assert_int_equal(image.kind, LS_IMAGE_OK);
        assert_int_equal(image.exports_lua_newstate, 1);
        assert_int_equal(image.scripts, 1);
        assert_string_equal(image.path, path_of("lj"));
        snprintf(text, sizeof text, "#!%s/a.lua\n", dir);       /* a script run by a script */
        image = inspect(script("b.lua", text), 0);
        assert_int_equal(image.exports_lua_newstate, 1);
        assert_int_equal(image.scripts, 2);
        for (size_t i = 0; i < sizeof env / sizeof *env; i++) {
                image = inspect(script("env.lua", env[i].line), 0);
                assert_int_equal(image.via_env, 1);
                assert_int_equal(image.kind, LS_IMAGE_OK);
                assert_int_equal(image.exports_lua_newstate, env[i].found);
        }
        f = make_elf(GLIBC, "libasan.so.8", NULL);
        write_file("lj", &f, sizeof f, 0755);
        image = inspect(script("env.lua", env[0].line), 0);
        assert_int_equal(image.kind, LS_IMAGE_ASAN);
        ls_image_describe(&image, sentence, sizeof sentence);
        assert_non_null(strstr(sentence, "/lj (run by "));
        assert_non_null(strstr(sentence, "sanitizer"));
}

static void test_bad_scripts(void **state)
{
        char text[400], loop[128];

        (void)state;
        assert_int_equal(inspect(script("s", "#!\n"), 0).kind, LS_IMAGE_NOT_ELF);
        assert_int_equal(inspect(script("s", "#!   \n/bin/sh"), 0).kind, LS_IMAGE_NOT_ELF);
        assert_int_equal(inspect(script("s", "#!/nosuch/interpreter\n"), 0).kind, LS_IMAGE_NOT_ELF);
        memset(text, 'x', sizeof text - 1);
        memcpy(text, "#!/", 3);
        text[sizeof text - 1] = '\0';
        assert_int_equal(inspect(script("s", text), 0).kind, LS_IMAGE_NOT_ELF);
        snprintf(loop, sizeof loop, "#!%s/loop\n", dir);
        assert_int_equal(inspect(script("loop", loop), 0).kind, LS_IMAGE_NOT_ELF);
        assert_int_equal(inspect(script("s", "echo hello\n"), 0).kind, LS_IMAGE_NOT_ELF);
        assert_int_equal(inspect(script("s", "echo hello\n"), LS_INSPECT_SHELL).kind, LS_IMAGE_OK);
        assert_int_equal(inspect(script("s", ""), 0).kind, LS_IMAGE_NOT_ELF);
}

static void test_search(void **state)
{
        struct elf_file f = make_elf(GLIBC, NULL, NULL);
        char search[256], found[PATH_MAX], tiny[8];

        (void)state;
        write_file("prog", &f, sizeof f, 0755);
        write_file("noexec", &f, sizeof f, 0644);
        mkdir(path_of("sub"), 0755);
        mkdir(path_of("sub/prog"), 0755);       /* a directory is no program: the search goes on */
        snprintf(search, sizeof search, "/nosuch:%s/sub:%s", dir, dir);
        assert_int_equal(ls_image_find("prog", search, found, sizeof found), 0);
        assert_string_equal(found, path_of("prog"));
        assert_int_equal(ls_image_find("nosuch", search, found, sizeof found), -ENOENT);
        assert_int_equal(ls_image_find("noexec", search, found, sizeof found), -EACCES);
        assert_int_equal(ls_image_find("", search, found, sizeof found), -ENOENT);
        assert_int_equal(ls_image_find(path_of("sub"), NULL, found, sizeof found), -EACCES);
        assert_int_equal(ls_image_find(path_of("prog/x"), NULL, found, sizeof found), -ENOENT);
        assert_true(ls_image_find("prog", search, tiny, sizeof tiny) < 0);
        assert_int_equal(inspect("noexec", 0).kind, LS_IMAGE_NOT_EXECUTABLE);
        assert_int_equal(inspect("nosuch", 0).kind, LS_IMAGE_MISSING);
        assert_int_equal(chdir(dir), 0);
        assert_int_equal(ls_image_find("prog", ":/nosuch", found, sizeof found),
                         0); /* "" is here */
        assert_string_equal(found, "prog");
}

static void test_by_descriptor(void **state)
{
        struct elf_file f = make_elf(GLIBC, NULL, "lua_newstate");
        int fd = open(write_file("elf", &f, sizeof f, 0755), O_PATH | O_CLOEXEC);
        struct ls_image image;

        (void)state;
        assert_true(fd >= 0);
        ls_image_inspect_fd(fd, NULL, 0, &image);
        assert_int_equal(image.kind, LS_IMAGE_OK);
        assert_int_equal(image.exports_lua_newstate, 1);
        close(fd);
        ls_image_inspect_fd(fd, NULL, 0, &image);
        assert_int_equal(image.kind, LS_IMAGE_MISSING);
        ls_image_inspect_fd(-1, NULL, 0, &image);
        assert_int_equal(image.kind, LS_IMAGE_MISSING);
}

/* Every byte of a file changed to a few values, and the file cut anywhere: no crash, no hang. */
static void test_damaged_files(void **state)
{
        static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0xff };
        struct elf_file f = make_elf(GLIBC, "libc.so.6", "lua_newstate"), bad;
        int fd = open(path_of("damaged"), O_RDWR | O_CREAT | O_CLOEXEC, 0755);
        struct ls_image image;

        (void)state;
        assert_true(fd >= 0);
        for (size_t i = 0; i < sizeof f; i++) {
                for (size_t k = 0; k < sizeof values; k++) {
                        bad = f;
                        ((uint8_t *)&bad)[i] = values[k];
                        assert_int_equal(pwrite(fd, &bad, sizeof bad, 0), sizeof bad);
                        ls_image_inspect_fd(fd, NULL, LS_INSPECT_TEXT, &image);
                        assert_in_range(image.kind, 0, LS_NIMAGE_KINDS - 1);
                }
        }
        assert_int_equal(pwrite(fd, &f, sizeof f, 0), sizeof f);
        for (off_t n = sizeof f; n >= 0; n--) {
                assert_int_equal(ftruncate(fd, n), 0);
                ls_image_inspect_fd(fd, NULL, LS_INSPECT_TEXT, &image);
                assert_in_range(image.kind, 0, LS_NIMAGE_KINDS - 1);
        }
        close(fd);
}

static void test_sentences(void **state)
{
        static struct ls_image image = { .file = "/x", .path = "/x" };
        char text[256], tiny[8];

        (void)state;
        for (int kind = LS_IMAGE_OK + 1; kind < LS_NIMAGE_KINDS; kind++) {
                image.kind = (enum ls_image_kind)kind;
                assert_int_equal(strncmp(ls_image_describe(&image, text, sizeof text), "/x ", 3),
                                 0);
                ls_image_describe(&image, tiny, sizeof tiny);
        }
        image.kind = LS_IMAGE_OK;
        assert_string_equal(ls_image_describe(&image, text, sizeof text), "");
        image.contains_luajit = 1;
        assert_non_null(strstr(ls_image_describe(&image, text, sizeof text), "lua_newstate"));
}

static int make_dir(void **state)
{
        const char *base = getenv("TMPDIR");

        (void)state;
        snprintf(dir, sizeof dir, "%.40s/inspectXXXXXX", base ? base : "/tmp");
        return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
        static const char *const names[] = { "elf", "lj",   "a.lua", "b.lua",  "env.lua",
                                             "s",   "loop", "prog",  "noexec", "damaged" };

        (void)state;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                unlink(path_of(names[i]));
        rmdir(path_of("sub/prog"));
        rmdir(path_of("sub"));
        return rmdir(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_lua_in_it),
                cmocka_unit_test(test_text_across_blocks),
                cmocka_unit_test(test_large_files),
                cmocka_unit_test(test_debian_luajit),
                cmocka_unit_test(test_setuid),
                cmocka_unit_test(test_scripts),
                cmocka_unit_test(test_bad_scripts),
                cmocka_unit_test(test_search),
                cmocka_unit_test(test_by_descriptor),
                cmocka_unit_test(test_damaged_files),
                cmocka_unit_test(test_sentences),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
