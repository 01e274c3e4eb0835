/* The writer's process: see main.c. Called by luasample.c alone. */
#ifndef LS_RECORD_WRITER_MAIN_H
#define LS_RECORD_WRITER_MAIN_H

#define LS_OUT_ROLE "write"             /* argv[1] of it */

/* Its life. Returns its exit status. */
int ls_serve_main(int argc, const char **argv);

#endif
