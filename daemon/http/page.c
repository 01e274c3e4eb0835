/* The pages of / and /debug/pprof/: see http.h. Plain HTML, without a script: what others have
 * named is escaped. */
#include "daemon/http/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/json.h"

static const char head[] =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" "
        "href=\"data:,\"><title>luasample</title>\n<style>\n"
        ":root { --page: #eef0f4; --panel: #fff; --line: #dfe3ea; --text: #1d232e; --dim: #68717f; "
        "--accent: #3b5bdb; --bar: #3aa87b; --bad: #c62f45; }\n"
        "@media (prefers-color-scheme: dark) { :root { --page: #0e1116; --panel: #161a21; --line: "
        "#272d37; --text: #e3e7ee; --dim: #8d97a7;\n"
        " --accent: #8aa4ff; --bad: #ff6b7d; } }\n"
        "body { margin: 0 auto; max-width: 1180px; padding: 20px; background: var(--page); color: "
        "var(--text);\n"
        " font: 14px/1.5 ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'Liberation Sans', Arial, "
        "sans-serif; }\n"
        "h1 { font-size: 20px; margin: 0 0 2px; } h2 { font-size: 15px; margin: 24px 0 8px; } p { "
        "margin: 2px 0; }\n"
        ".dim, th { color: var(--dim); font-weight: 400; } .bad { color: var(--bad); }\n"
        "table { width: 100%; border-collapse: collapse; background: var(--panel); border: 1px "
        "solid var(--line); border-radius: 8px; }\n"
        "th, td { text-align: left; padding: 7px 12px; border-top: 1px solid var(--line); "
        "vertical-align: top; overflow-wrap: break-word; }\n"
        "tr:first-child th { border-top: 0; } td.n, th.n { text-align: right; "
        "font-variant-numeric: tabular-nums; white-space: nowrap; }\n"
        "a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; "
        "} td a { margin-right: 10px; white-space: nowrap; }\n"
        "code { font: 12.5px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }\n"
        "form { display: inline; } button { font: inherit; color: var(--accent); background: none; "
        "border: 1px solid var(--line); border-radius: 6px;\n"
        " padding: 0 8px; margin-right: 6px; cursor: pointer; }\n"
        "</style></head><body>\n";

static void put(FILE *out, const char *text)
{
        for (; *text; text++) {
                switch (*text) {
                case '<':
                        fputs("&lt;", out);
                        break;
                case '>':
                        fputs("&gt;", out);
                        break;
                case '&':
                        fputs("&amp;", out);
                        break;
                case '"':
                        fputs("&quot;", out);
                        break;
                case '\'':
                        fputs("&#39;", out);
                        break;
                default:
                        putc(*text, out);
                }
        }
}

/* "12.3 MiB" */
static void put_bytes(FILE *out, long long n)
{
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
        double v = (double)n;
        unsigned i = 0;

        while (v >= 1024 && i < 4) {
                v /= 1024;
                i++;
        }
        fprintf(out, "%.*f&nbsp;%s", i && v < 100, v, units[i]);
}

static void put_link(FILE *out, const char *path, const char *key, const char *value,
                     const char *more, const char *text)
{
        fprintf(out, "<a href=\"%s?%s=", path, key);
        put(out, value);
        fprintf(out, "%s\">%s</a>", more, text);
}

static void put_button(FILE *out, const char *path, const char *service, const char *more,
                       const char *text)
{
        fprintf(out, "<form method=\"post\" action=\"%s?service=", path);
        put(out, service);
        fprintf(out, "%s\"><button>%s</button></form>", more, text);
}

/* The most that one of its processes is charged, of the CPU time that it uses; -1 = not known
 * yet. */
static double cost_of(yajl_val *targets, size_t n, const char *service)
{
        long long most = -1;

        for (size_t i = 0; i < n; i++)
                if (!strcmp(ls_json_text(targets[i], "service"), service) &&
                    ls_json_number(targets[i], "recorder") &&
                    ls_json_number(targets[i], "cost_ppm") > most)
                        most = ls_json_number(targets[i], "cost_ppm");
        return most < 0 ? -1 : (double)most / 10000;
}

static void put_service(FILE *out, yajl_val s, yajl_val *targets, size_t n_targets)
{
        const char *name = ls_json_text(s, "name"), *state = ls_json_text(s, "state");
        double cost = cost_of(targets, n_targets, name);

        fputs("<tr><td><b>", out);
        put(out, name);
        fprintf(out, "</b></td><td%s>", strcmp(state, "recording") ? " class=\"bad\"" : "");
        put(out, state);
        if (*ls_json_text(s, "reason") && strcmp(state, "recording")) {
                fputs("<br><span class=\"dim\">", out);
                put(out, ls_json_text(s, "reason"));
                fputs("</span>", out);
        }
        fprintf(out, "</td><td class=\"n\">%lld of %lld</td><td class=\"n\">",
                ls_json_number(s, "recorded"), ls_json_number(s, "processes"));
        if (cost < 0)
                fputs("-", out);
        else
                fprintf(out, "%.2f&nbsp;%%", cost);
        fputs("</td><td class=\"n\">", out);
        put_bytes(out, ls_json_number(s, "bytes"));
        fputs("</td><td>", out);
        put_link(out, "/flame", "service", name, "&amp;last=10m", "flame&nbsp;10&nbsp;min");
        put_link(out, "/flame", "service", name, "&amp;last=1h", "1&nbsp;h");
        put_link(out, "/flame", "service", name, "&amp;last=24h", "24&nbsp;h");
        put_link(out, "/diff", "service", name, "&amp;last=1h&amp;before=24h",
                 "beside&nbsp;yesterday");
        put_link(out, "/debug/pprof/profile", "service", name, "&amp;last=10m", "pprof");
        put_link(out, "/debug/pprof/profile", "service", name,
                 "&amp;last=10m&amp;format=speedscope", "speedscope");
        put_button(out, "/burst", name, "", "record closely");
        put_button(out, "/snapshot", name, "&amp;last=10m", "keep 10 min");
        fputs("</td></tr>\n", out);
}

static void put_target(FILE *out, yajl_val t)
{
        char pid[32];

        snprintf(pid, sizeof(pid), "%lld", ls_json_number(t, "pid"));
        fprintf(out, "<tr><td class=\"n\">%s</td><td>", pid);
        put(out, ls_json_text(t, "name"));
        fputs("</td><td>", out);
        put(out, ls_json_text(t, "service"));
        fputs("</td><td>", out);
        put(out, ls_json_text(t, "state"));
        if (*ls_json_text(t, "reason")) {
                fputs("<br><span class=\"dim\">", out);
                put(out, ls_json_text(t, "reason"));
                fputs("</span>", out);
        }
        fprintf(out, "</td><td class=\"n\">%lld&nbsp;ms</td><td class=\"n\">%.2f&nbsp;%%</td><td>",
                ls_json_number(t, "interval_ns") / 1000000,
                (double)ls_json_number(t, "cost_ppm") / 10000);
        if (ls_json_number(t, "recorder")) {
                put_link(out, "/stack", "pid", pid, "", "stacks now");
                put_link(out, "/flame", "pid", pid, "&amp;last=10m", "flame");
                put_link(out, "/debug/pprof/profile", "pid", pid, "&amp;seconds=10",
                         "pprof of the next 10 s");
        }
        fputs("</td></tr>\n", out);
}

static void put_services(FILE *out, yajl_val status, yajl_val *targets, size_t n_targets)
{
        size_t n;
        yajl_val *v = ls_json_array(status, "services", &n);

        fputs("<h2>Services</h2>\n", out);
        if (!n)
                fputs("<p class=\"dim\">The configuration has no [service NAME]: nothing is "
                      "recorded.</p>\n",
                      out);
        if (n)
                fputs("<table><tr><th>service</th><th>state</th><th class=\"n\">recorded</th><th "
                      "class=\"n\">cost of the agent</th>"
                      "<th class=\"n\">stored</th><th>look at it</th></tr>\n",
                      out);
        for (size_t i = 0; i < n; i++)
                put_service(out, v[i], targets, n_targets);
        if (n)
                fputs("</table>\n", out);
}

static void put_endpoints(FILE *out, const char *below)
{
        fputs("<table><tr><th>path</th><th></th></tr>\n", out);
        for (const struct ls_http_endpoint *e = ls_http_endpoints; e->path; e++)
                if (!strncmp(e->path, below, strlen(below)))
                        fprintf(out, "<tr><td><code>%s %s</code></td><td>%s</td></tr>\n", e->method,
                                e->path, e->help);
        fputs("</table>\n", out);
}

static void put_head(FILE *out, yajl_val status)
{
        fputs(head, out);
        fputs("<h1>luasample</h1><p class=\"dim\">version ", out);
        put(out, ls_json_text(status, "version"));
        fprintf(out,
                ", process %lld, running for %lld s; %.2f&nbsp;%% of the host's processors; store ",
                ls_json_number(status, "pid"), ls_json_number(status, "uptime_s"),
                (double)ls_json_number(status, "host_cost_ppm") / 10000);
        put(out, ls_json_text(status, "store"));
        fputs("</p>\n", out);
        if (ls_json_number(status, "disk_full"))
                fputs("<p class=\"bad\">The store's disk is full: nothing is recorded.</p>\n", out);
        if (*ls_json_text(status, "pressure")) {
                fputs("<p class=\"bad\">Nothing is attached to: ", out);
                put(out, ls_json_text(status, "pressure"));
                fputs("</p>\n", out);
        }
}

static void put_page(FILE *out, yajl_val all, yajl_val status)
{
        size_t n;
        yajl_val *targets = ls_json_array(all, "targets", &n);

        put_services(out, status, targets, n);
        fputs("<h2>Processes</h2>\n", out);
        if (!n)
                fputs("<p class=\"dim\">No process matches a rule.</p>\n", out);
        if (n)
                fputs("<table><tr><th "
                      "class=\"n\">process</th><th>name</th><th>service</th><th>state</th><th "
                      "class=\"n\">interval</th>"
                      "<th class=\"n\">cost</th><th></th></tr>\n",
                      out);
        for (size_t i = 0; i < n; i++)
                put_target(out, targets[i]);
        if (n)
                fputs("</table>\n", out);
        fputs("<h2>What there is</h2>\n", out);
        put_endpoints(out, "/");
}

static void put_index(FILE *out, yajl_val all, yajl_val status)
{
        size_t n;
        yajl_val *v = ls_json_array(status, "services", &n);

        (void)all;
        fputs("<h2>Profiles</h2>\n", out);
        put_endpoints(out, "/debug/pprof/");
        fputs("<p>Add <code>service=NAME</code> or <code>pid=PID</code>; <code>seconds=N</code> "
              "(the next N seconds), "
              "<code>last=10m</code>, or\n<code>from=</code> and <code>to=</code>; "
              "<code>format=NAME</code> as luasample export "
              "has it.</p>\n",
              out);
        for (size_t i = 0; i < n; i++) {
                fputs("<p>", out);
                put_link(out, "/debug/pprof/profile", "service", ls_json_text(v[i], "name"), "",
                         "profile of 30 s: ");
                put(out, ls_json_text(v[i], "name"));
                fputs("</p>\n", out);
        }
}

/* A page of the daemon's answer: its head, and what this one has. */
static int put_answer(FILE *out, const char *text,
                      void (*put_body)(FILE *out, yajl_val all, yajl_val status))
{
        char why[64];
        yajl_val all = yajl_tree_parse(text, why, sizeof(why)),
                 status = all ? ls_json_object(all, "status") : NULL;

        if (status) {
                put_head(out, status);
                put_body(out, all, status);
                fputs("</body></html>\n", out);
        }
        yajl_tree_free(all);
        return status ? 0 : -EPROTO;
}

int ls_http_page(const struct ls_http_call *c, const char *text, FILE *out)
{
        (void)c;
        return put_answer(out, text, put_page);
}

int ls_http_index(const struct ls_http_call *c, const char *text, FILE *out)
{
        (void)c;
        return put_answer(out, text, put_index);
}
