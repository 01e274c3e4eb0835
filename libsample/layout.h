/* How LuaJIT (x86-64, GC64) lays out what the agent reads raw. Object layouts are the same in all
 * builds of 2.1 and are verified on known objects before use (probe.c); places in global_State
 * differ and are searched for. */
#ifndef LS_LIBSAMPLE_LAYOUT_H
#define LS_LIBSAMPLE_LAYOUT_H

#include <stdint.h>
#include <string.h>

#include "libsample/seen.h"

typedef struct lua_State lua_State;

/* Byte offsets. */
enum {
        LS_G_ALLOCF = 0, /* in global_State: the first word */
        LS_G_TOTAL = 16,
        LS_G_THRESHOLD = 24,
        LS_G_WHITE = 32,
        LS_G_PHASE = 33,
        LS_G_COLLECTOR_END = 34,
        LS_L_GLREF = 16,
        LS_L_BASE = 32,
        LS_L_TOP = 40,
        LS_L_MAXSTACK = 48,
        LS_L_STACK = 56,
        LS_L_ENV = 72,
        LS_L_CFRAME = 80,
        LS_GC_MARKED = 8,
        LS_GC_TYPE = 9,
        LS_FN_FFID = 10,
        LS_FN_NUPVALUES = 11,
        LS_FN_PC = 32,
        LS_FN_ADDR = 40,
        LS_FN_UPVALUES = 40,
        LS_UV_VALUE = 32,
        LS_PT_FRAMESIZE = 11,
        LS_PT_SIZEBC = 12,
        LS_PT_K = 32,
        LS_PT_SIZEKGC = 48,
        LS_PT_SIZEKN = 52,
        LS_PT_SIZEPT = 56,
        LS_PT_SIZEUV = 60,
        LS_PT_FLAGS = 61,
        LS_PT_CHUNKNAME = 64,
        LS_PT_FIRSTLINE = 72,
        LS_PT_NUMLINE = 76,
        LS_PT_LINEINFO = 80,
        LS_PT_UVINFO = 88,
        LS_PT_VARINFO = 96,
        LS_PT_SIZE = 104,
        LS_STR_HASH = 16,
        LS_STR_LEN = 20,
        LS_STR_DATA = 24,
        LS_TAB_ARRAY = 16,
        LS_TAB_META = 32,
        LS_TAB_NODE = 40,
        LS_TAB_ASIZE = 48,
        LS_TAB_HMASK = 52,
        LS_UDATA_META = 32,
        LS_CDATA_VALUE = 16,
        LS_NODE_VAL = 0,
        LS_NODE_KEY = 8,
        LS_NODE_SIZE = 24,
        LS_CF_NRES = 8,
        LS_CF_L = 16,
        LS_CF_PC = 24,
        LS_CF_PREV = 32,
        LS_CF_SIZE = 80,
        LS_CF_RETURN = 72,
};
#define LS_GC_WHITES   3                /* bits of LS_G_WHITE: colours of new objects */
#define LS_PTF_VARARG 0x02
#define LS_PTF_NOJIT  0x08

/* Types in the upper 17 bits of a TValue, and in the gct byte as their complement. */
enum {
        LS_T_STR = 4,
        LS_T_THREAD = 6,
        LS_T_PROTO = 7,
        LS_T_FUNC = 8,
        LS_T_CDATA = 10,
        LS_T_TAB = 11,
        LS_T_UDATA = 12
};

/* Frame types in the low bits of a frame's link. */
enum { LS_FRAME_LUA = 0, LS_FRAME_C = 1, LS_FRAME_CONT = 2, LS_FRAME_VARG = 3, LS_FRAME_TYPEP = 7 };

/* What is in the place of a continuation in the frame of a callback from C (LuaJIT's FFI). */
#define LS_CONT_FFI_CALLBACK 1

#define LS_FFID_LUA 0
#define LS_FFID_C   1

static inline const char *ls_gcptr(uint64_t tv)
{
        return (const char *)(uintptr_t)(tv & ((UINT64_C(1) << 47) - 1));
}

static inline int ls_istype(uint64_t tv, unsigned type)
{
        return tv >> 47 == (~(uint64_t)type & 0x1ffff);
}

static inline uint64_t ls_tagged(const void *p, unsigned type)
{
        return (uint64_t)(uintptr_t)p | ~(uint64_t)type << 47;
}

static inline const char *ls_str_data(const char *s) { return s + LS_STR_DATA; }
static inline uint32_t ls_str_len(const char *s) { return LS_READ(uint32_t, s, LS_STR_LEN); }

static inline int ls_fn_is_lua(const char *fn)
{
        return LS_READ(uint8_t, fn, LS_FN_FFID) == LS_FFID_LUA;
}

/* Prototype of a Lua function: its first bytecode follows the prototype. */
static inline const char *ls_fn_proto(const char *fn)
{
        return (const char *)(LS_READ(uintptr_t, fn, LS_FN_PC) -
                              LS_PT_SIZE); /* may be anything in another process */
}

/* 1 when pc can be a saved PC in this prototype: behind one of its instructions. */
static inline int ls_pt_has_pc(const char *pt, const char *pc)
{
        const char *bc = pt + LS_PT_SIZE;

        return pc > bc && pc <= bc + 4 * (size_t)LS_READ(uint32_t, pt, LS_PT_SIZEBC);
}

/* Of a prototype's lines and sizes: another one at the same address is most likely of another
 * shape. */
static inline uint32_t ls_pt_shape(const char *pt)
{
        return LS_READ(uint32_t, pt, LS_PT_FIRSTLINE) * 31 +
               LS_READ(uint32_t, pt, LS_PT_NUMLINE) * 1009 +
               LS_READ(uint32_t, pt, LS_PT_SIZEBC) * 65599 +
               LS_READ(uint32_t, pt, LS_PT_SIZEKGC) * 16777259;
}

/* Bytes of a line: of each instruction but the first. */
static inline uint32_t ls_pt_line_width(const char *pt)
{
        uint32_t lines = LS_READ(uint32_t, pt, LS_PT_NUMLINE);

        return lines < 256 ? 1 : lines < 65536 ? 2 : 4;
}

/* Line of the instruction before pc. 0 = stripped. */
static inline uint32_t ls_pt_line(const char *pt, const char *pc)
{
        uint32_t pos = (uint32_t)((pc - (pt + LS_PT_SIZE)) / 4) - 1;
        uint32_t first = LS_READ(uint32_t, pt, LS_PT_FIRSTLINE), width = ls_pt_line_width(pt);
        const char *info = LS_READ(const char *, pt, LS_PT_LINEINFO);

        if (!info)
                return 0;
        if (pos == 0)
                return first;
        pos--;
        if (width == 1)
                return first + LS_READ(uint8_t, info, pos);
        if (width == 2)
                return first + LS_READ(uint16_t, info, 2 * (size_t)pos);
        return first + LS_READ(uint32_t, info, 4 * (size_t)pos);
}

#endif
