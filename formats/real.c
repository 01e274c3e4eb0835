/* Numbers with a fraction as text: see real.h. */
#include "formats/real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *ls_real_text(double value, char *buf)
{
        if (isnan(value)) {
                snprintf(buf, LS_REAL_TEXT, "nan"); /* its sign says nothing */
                return buf;
        }
        for (int digits = 15; digits <= 17; digits++) {
                snprintf(buf, LS_REAL_TEXT, "%.*g", digits, value);
                if (strtod(buf, NULL) == value)
                        break;
        }
        return buf;
}
