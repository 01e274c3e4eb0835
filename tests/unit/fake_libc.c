/* A library that says to be the GNU C library 2.35. See test_record_attach_modules.c. */
const char *gnu_get_libc_version(void);

__attribute__((visibility("default"))) const char *gnu_get_libc_version(void)
{
        return "2.35";
}
