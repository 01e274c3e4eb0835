/* What the daemon never exceeds, and how long it waits. luasample-daemon(1) has them in one table,
 * LIMITS. */
#ifndef LS_DAEMON_BOUNDS_H
#define LS_DAEMON_BOUNDS_H

#define SECOND_NS 1000000000ull

#define LS_FIRST_NS SECOND_NS                   /* of a program, in which it is left alone */
#define LS_SETTLED_NS                                                                              \
        (10 * SECOND_NS) /* after it a program that no rule names is not looked at again */
#define LS_LOOKS_MOST                                                                              \
        200u /* a second that the kernel's events bring; then all are looked at together */
#define LS_STARTING_MOST 2u                     /* attachments at one time */
#define LS_ATTACH_NS (60 * SECOND_NS)           /* for one attachment */
#define LS_END_NS (10 * SECOND_NS)              /* for a recorder to end; then it is killed */
#define LS_REFUSED_NS                                                                              \
        (5 *                                                                                       \
         SECOND_NS) /* until a process that cannot be recorded is tried again; doubled each time */
#define LS_REFUSED_MOST_NS (3600 * SECOND_NS)
#define LS_FAILURES_MOST 2u /* in LS_ASIDE_NS: then the service is put aside for as long */
#define LS_ASIDE_NS (3600 * SECOND_NS)
#define LS_BACK_OFF_NS (2 * SECOND_NS)          /* after a failure */
#define LS_LEAVES_NS (30 * SECOND_NS)           /* after a failure a refusal is not counted */
#define LS_INTERVAL_MOST_NS (2 * SECOND_NS)     /* an interval is doubled while it is less */
#define LS_BURST_INTERVAL_NS 1000000u /* of close recording, with wall time and native stacks, */
#define LS_BURSTS_MOST 4u                       /* of so many processes at one time */
#define LS_RULES_MOST 16u                       /* [rule NAME] */
#define LS_COMMANDS_MOST 4u                     /* of rules, at one time, */
#define LS_COMMAND_NS (60 * SECOND_NS)          /* for so long */
#define LS_KEEP_NS (60 * SECOND_NS)             /* what a rule keeps, */
#define LS_KEPT_MOST 100u                       /* times in all, */
#define LS_KEPT_EACH_MOST 50u                   /* of one rule, or of snapshots of one service */
#define LS_KEEPINGS_MOST 8u             /* that wait until what they keep is in the store */
#define LS_SNAPSHOT_MS 600000u          /* what ctl snapshot keeps, when no time is given */
#define LS_OPERATIONS_MOST 64u          /* that can be asked for */
#define LS_QUERIES_MOST 32u             /* of HTTP that wait or are answered, */
#define LS_QUERIES_AT_ONCE 2u           /* so many at one time, */
#define LS_QUERY_CPU_S 60u              /* with so much CPU time, */
#define LS_QUERY_NS (120 * SECOND_NS)   /* time, */
#define LS_QUERY_BYTES (2ull << 30)     /* address space, */
#define LS_QUERY_FILE (256ull << 20)    /* and answer; LS_STORE_APART_BYTES of chunks */
#define LS_MERGE_MS 5000u /* with three chunks, after the end of a time until it is merged */
#define LS_MERGE_CPU_S 300u                     /* of a merger, */
#define LS_MERGE_BYTES (2ull << 30)             /* and its address space */
#define LS_SINKS_MOST 8u                        /* [sink NAME] */
#define LS_SINK_LAG_MS 2000u                    /* with two chunks, until a time is sent */
#define LS_SINK_WINDOW_MS 60000u                /* sent at one time by one that is behind */
#define LS_SINK_NS (300 * SECOND_NS)            /* for one service of it */
#define LS_SINK_WAIT_MS 300000u                 /* between two tries, at most */
#define LS_PRESSURE_PERCENT 10.0                /* PSI: some, avg10 of memory */
#define LS_AVAILABLE_PERCENT 5u                 /* MemAvailable of MemTotal */
#define LS_WATCHED_MOST 1024u                   /* processes that rules name */
#define LS_CLIENTS_MOST 32u                     /* of the control socket */
#define LS_REQUEST_MOST 4352u                   /* bytes of a request */
#define LS_CLIENT_NS (10 * SECOND_NS)           /* for a client to ask, and to read the answer */
#define LS_LEND_NS (15 * SECOND_NS)             /* for what is lent, flushed or stopped */
#define LS_FLUSH_NS (12 * SECOND_NS)            /* then, for a sink: a client waits 30 s */
#define LS_LENT_MOST 256u                       /* processes of one client */

#endif
