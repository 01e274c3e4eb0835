/* Runs a fuzz target on all files of the directories named, so that the corpus is part of every
 * test run. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
        FILE *f = fopen(path, "rb");
        uint8_t *data;
        long size;

        if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) {
                perror(path);
                return 1;
        }
        data = malloc((size_t)size + 1);
        if (!data || fread(data, 1, (size_t)size, f) != (size_t)size) {
                perror(path);
                return 1;
        }
        fclose(f);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        free(data);
        return 0;
}

int main(int argc, char **argv)
{
        int files = 0;

        for (int i = 1; i < argc; i++) {
                DIR *d = opendir(argv[i]);
                struct dirent *e;

                if (!d) {
                        perror(argv[i]);
                        return 1;
                }
                while ((e = readdir(d))) {
                        char path[4096];

                        if (e->d_name[0] == '.')
                                continue;
                        snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
                        if (run_file(path))
                                return 1;
                        files++;
                }
                closedir(d);
        }
        printf("%d inputs\n", files);
        return files == 0;
}
