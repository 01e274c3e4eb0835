/* Writes native stacks of a C++ program in the middle of exceptions (native_throws.cc) to the file
 * that its argument names: for tests/unit/test_record_native_unwind_witness.c. */
#include "tests/hosts/native_dump.h"

#define TICKS 400

void throws_in_destructor(void);
void throws_in_catch(void);
void throws_again(void);
void throws_often(void);

static void sample_here(void)
{
        raise(DUMP_SIGNAL);
}

void (*throws_here)(void) = sample_here;

static void work(void *arg)
{
        (void)arg;
        throws_often();
}

int main(int argc, char **argv)
{
        static const struct { const char *name; void (*run)(void); } scenes[] = {
                { "in_destructor", throws_in_destructor },
                { "in_catch", throws_in_catch },
                { "throws_again", throws_again },
        };

        if (argc != 2) {
                fprintf(stderr, "usage: %s FILE\n", argv[0]);
                return 129;
        }
        dump_open(argv[1]);
        throws_often();                         /* what is loaded for the first throw is mapped
                                                 * now */
        dump_maps();
        for (unsigned i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
                dump_name = scenes[i].name;
                scenes[i].run();
                dump_name = NULL;
        }
        dump_ticks("tick_throws", TICKS, work, NULL);
        return 0;
}
