/* See robust.h. The kernel goes through a list of entries, and looks at the word that lies at one
 * distance from each. The words are the targets', the entries are not: they lie in memory of our
 * own, in as many pages, so that no target can lead the kernel elsewhere. */
#include "record/attach/robust.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/wire/shm.h"

#define PAGE    4096u
#define MOST    1024u                   /* targets at one time */
#define WORD    offsetof(struct ls_shm, recorder_thread)
/* Where an entry lies in its page; entries are aligned to 8 bytes, words to 4. */
#define ENTRY   (WORD & ~(size_t)7)

static struct robust_list_head head = { .list = { &head.list } };
static char *entries, *words;           /* a page for each target */
static struct robust_list *listed[MOST];

static struct robust_list *entry_of(unsigned i)
{
        return (struct robust_list *)(entries + (size_t)i * PAGE + ENTRY);
}

static int begin(void)
{
        entries = mmap(NULL, 2 * (size_t)MOST * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (entries == MAP_FAILED) {
                entries = NULL;
                return -1;
        }
        words = entries + (size_t)MOST * PAGE;
        head.futex_offset = (long)((size_t)MOST * PAGE + WORD - ENTRY);
        return syscall(SYS_set_robust_list, &head, sizeof(head)) ? -1 : 0;
}

unsigned ls_robust_begin(int fd)
{
        static int can;
        unsigned i = 0;
        struct ls_shm *shm;

        if (getpid() != (pid_t)syscall(SYS_gettid))
                return 0;
        if (!can)
                can = begin() ? -1 : 1;
        while (i < MOST && listed[i])
                i++;
        if (can < 0 || i == MOST)
                return 0;
        shm = mmap(words + (size_t)i * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   fd, 0);
        if (shm == MAP_FAILED)
                return 0;
        listed[i] = entry_of(i);
        listed[i]->next = head.list.next;
        head.list.next = listed[i];
        atomic_store(&shm->recorder_thread, (uint32_t)getpid());
        return i + 1;
}

void ls_robust_end(unsigned entry)
{
        struct robust_list *before = &head.list;

        if (!entry || !listed[entry - 1])
                return;
        while (before->next != listed[entry - 1])
                before = before->next;
        before->next = listed[entry - 1]->next;
        listed[entry - 1] = NULL;
        mmap(words + (size_t)(entry - 1) * PAGE, PAGE, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
