/* How much memory a test has, for those that bound what hostile input may take. */
#ifndef LS_TESTS_MEMORY_USED_H
#define LS_TESTS_MEMORY_USED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* A sanitizer's own memory is many times what it watches. */
#if defined(__SANITIZE_ADDRESS__)
#define MEASURES_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEASURES_MEMORY 0
#endif
#endif
#ifndef MEASURES_MEMORY
#define MEASURES_MEMORY 1
#endif

/* Bytes that are resident. */
static inline uint64_t memory_used(void)
{
        unsigned long pages = 0, resident = 0;
        FILE *f = fopen("/proc/self/statm", "re");

        assert_int_equal(fscanf(f, "%lu %lu", &pages, &resident), 2);
        fclose(f);
        return resident * 4096ull;
}

#endif
