// Exceptions of C++, for tests/hosts/native_throws.c: frames whose function is left by a throw, whose destructors run
// meanwhile, and that catch.
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
extern void (*throws_here)(void);
void throws_in_destructor(void);
void throws_in_catch(void);
void throws_again(void);
void throws_often(void);
}

#define KEEP __attribute__((noinline))

namespace {

volatile int zero;

struct guard {
        bool samples;
        explicit guard(bool s) : samples(s) {}
        KEEP ~guard()
        {
                if (samples)
                        throws_here();
                zero = 0;
        }
};

KEEP void thrower(int depth, bool samples)
{
        guard g(samples);
        std::vector<std::string> some(3, "a string that is longer than what a string holds itself");

        if (depth == 0)
                throw std::runtime_error(some[zero]);
        thrower(depth - 1, samples);
        zero = 0;
}

KEEP void catches(void (*what)(void))
{
        try {
                thrower(5, false);
        } catch (const std::exception &e) {
                what();
                zero = e.what()[0] == 0;
        }
}

KEEP void throws_in_turn(void)
{
        try {
                thrower(2, true);
        } catch (...) {
                throws_here();
                throw;
        }
}

}

void throws_in_destructor(void)
{
        try {
                thrower(4, true);
        } catch (const std::exception &) {
                zero = 0;
        }
}

void throws_in_catch(void)
{
        catches(throws_here);
}

void throws_again(void)
{
        try {
                catches(throws_in_turn);
        } catch (const std::exception &) {
                throws_here();
        }
}

void throws_often(void)
{
        for (int i = 0; i < 20; i++)
                catches([] { zero = 0; });
}
