/* Columns by which samples that agree in their stack can be told apart. Used by the exporters of formats/ and the keys of
 * report/: an aggregate keeps no more of them than asked for. */
#ifndef LS_FORMATS_DIMS_H
#define LS_FORMATS_DIMS_H

#define LS_DIM_VMSTATE 1u
#define LS_DIM_ZONE    2u
#define LS_DIM_THREAD  8u
#define LS_DIM_VM      16u
#define LS_DIM_COROUTINE 32u
#define LS_DIM_TRACE   64u
#define LS_DIM_LABEL   128u

#endif
