/* Numbers with a fraction as text, for JSON and for people: the shortest that is read back as the
 * same number. */
#ifndef LS_FORMATS_REAL_H
#define LS_FORMATS_REAL_H

#define LS_REAL_TEXT 32u

/* Into buf, LS_REAL_TEXT bytes; returns it. "nan", "inf" or "-inf" where value is that: JSON has no
 * such numbers. */
const char *ls_real_text(double value, char *buf);

#endif
