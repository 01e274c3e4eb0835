/* Columns by which samples that agree in their stack can be told apart, from dims.def. Used by the
 * trace's writer and reader, the exporters of formats/ and the keys of report/: an aggregate keeps
 * no more of them than asked for. */
#ifndef LS_FORMATS_DIMS_H
#define LS_FORMATS_DIMS_H

#include <stdint.h>

#define LS_LIVED_NS 100000u             /* unit of the column lived */

enum ls_dim_number {
#define LS_DIM(NAME, name, bits, KIND, key) LS_DIM_NUMBER_##NAME,
#include "formats/dims.def"
#undef LS_DIM
        LS_DIM_NUMBER_TRACE,
        LS_DIMS
};

enum ls_dim {
#define LS_DIM(NAME, name, bits, KIND, key) LS_DIM_##NAME = 1u << LS_DIM_NUMBER_##NAME,
#include "formats/dims.def"
#undef LS_DIM
        LS_DIM_TRACE = 1u << LS_DIM_NUMBER_TRACE
};

/* Their fields in a struct, each as wide as its column. */
#define LS_DIM_TYPE_8 uint8_t
#define LS_DIM_TYPE_32 uint32_t

#endif
