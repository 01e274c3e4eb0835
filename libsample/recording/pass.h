/* Calls of the program that are at work in the agent. */
#ifndef LS_LIBSAMPLE_RECORDING_PASS_H
#define LS_LIBSAMPLE_RECORDING_PASS_H

/* 1 in the recorded process itself, 0 in its children: those of vfork too, which share its
 * memory. */
int ls_in_recorded_process(void);

/* Around what normal code of the program does with the recording: in a process that was attached
 * to that may end meanwhile. come_in returns 0 when nothing is recorded here; then go_out must
 * not be called. */
int ls_control_come_in(void);
/* The same for what needs no ring of its thread. */
int ls_control_pass(void);
/* The same for entries of the VM: the agent hears of VMs for as long as it samples. */
int ls_control_pass_vm(void);
void ls_control_go_out(void);

#endif
