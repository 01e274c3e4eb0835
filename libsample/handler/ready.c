/* See ready.h. */

#include "libsample/handler/ready.h"

#include "libsample/pages.h"

void ls_ready_close(struct ls_vm *vm)
{
        struct ls_vm_ready *ready = vm->ready;

        vm->ready = NULL;
        ls_pages_free(ready, sizeof *ready);
}
