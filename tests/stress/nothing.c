/* What LD_PRELOAD brings in place of the agent, into a program that has the agent built in. */
extern int ls_stress_nothing;
int ls_stress_nothing;
