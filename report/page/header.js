/* The head of the page: what was recorded, how well, and what is missing. */

function rateText(header) {
        const asked = header.asked_interval_ns ? 1e9 / header.asked_interval_ns : 0;

        return (asked ? 'asked ' + count(asked) + ' Hz, ' : '') + 'achieved ' + count(header.achieved_rate_hz) + ' Hz';
}

/* [class, text]: whether the numbers can be trusted. */
function quality(profile) {
        const missing = profile.header.incomplete,
                has = kind => profile.facts.losses.some(l => l[3] === kind),
                what = [has(0) && 'lost', has(1) && 'incomplete'].filter(Boolean).join(' or ');

        if (profile.header.damaged_chunks) return ['bad', 'trace is damaged'];
        if (!what) return ['good', 'nothing lost'];
        return [missing > 0.05 ? 'bad' : missing > 0.01 ? 'fair' : 'good', percent(missing) + ' ' + what];
}

/* In place of the flame graph. */
function nothingText({ header, besidesCpu, event }) {
        if (!header.recorded_ticks) return besidesCpu ? 'No ' + event + ' time was recorded.' : 'No samples were recorded.';
        return (
                'No samples to show: none of ' +
                ticksText(header.recorded_ticks) +
                (header.filters ? ' passes ' + cut(header.filters, 300) : ' is in a region that the program marked')
        );
}

function showHeader(profile) {
        const { header, facts } = profile,
                [kind, text] = quality(profile);
        const fact = (title, value, kind = '') => el('span', { class: 'fact ' + kind, title }, value);

        document.title = cut(header.command || profile.title || 'profile', 80) + ' \u2014 luasample';
        $('command').textContent = cut(header.command || profile.title, 500);
        $('command').title = cut(header.command || profile.title, 1000);
        $('facts').replaceChildren(
                ...(profile.base
                        ? [
                                  el(
                                          'span',
                                          { class: 'fact compare' },
                                          cut(profile.base.title, 60),
                                          ' \u2192 ',
                                          cut(profile.title || 'now', 60),
                                  ),
                          ]
                        : []),
                ...(profile.besidesCpu
                        ? [fact('which time the ticks are of (report --event)', cut(profile.event, 40) + ' time', 'rate')]
                        : []),
                fact('samples per second of CPU time', rateText(header), 'rate'),
                fact(
                        'CPU time of the sampled threads',
                        duration(header.cpu_ns) + ' CPU' + (facts.elapsed_ns ? ' in ' + duration(facts.elapsed_ns) : ''),
                ),
                fact('samples; one may stand for several ticks', count(header.samples) + ' samples'),
        );
        $('quality').className = 'pill ' + kind;
        $('quality').textContent = text;
        $('quality').addEventListener('click', () => $('about').showModal());
        $('about-body').replaceChildren(...aboutRows(profile));
}

function marksText(marks) {
        const first = marks.slice(0, 8).map(m => (m.name || '(no name)') + ' at ' + duration(m.at));

        return first.join(', ') + (marks.length > 8 ? ', and ' + count(marks.length - 8) + ' more' : '');
}

function aboutRows(profile) {
        const { header, facts } = profile,
                rows = [],
                row = (name, value) => rows.push(el('tr', {}, el('th', {}, name), el('td', {}, cut(value, 2000))));

        for (const [name, value] of facts.infos) row(name, value);
        if (facts.start_realtime_ns) row('Recorded', new Date(facts.start_realtime_ns / 1e6).toLocaleString());
        row('Rate', rateText(header));
        row(
                'Samples',
                (profile.event === 'cpu' ? count(facts.samples) + ' samples, ' : '') +
                        ticksText(header.recorded_ticks) +
                        ' of ' +
                        duration(profile.interval) +
                        (profile.besidesCpu ? ' of ' + profile.event + ' time' : ''),
        );
        if (header.filters || header.only_regions) {
                row('Filters', header.filters || 'only regions that the program marked');
                row(
                        'Shown',
                        count(header.ticks) + ' of ' + count(header.recorded_ticks) + ' ticks; shares are of these',
                );
        }
        if (profile.marks.length) row('Marks', marksText(profile.marks));
        row('Time steps', duration(profile.time.length) + ': a selection of time is of whole steps');
        row('Cost of sampling', percent(facts.own_share) + ' of the CPU time');
        for (const [name, ticks, share, kind] of facts.losses)
                row(
                        ['Lost', 'Incomplete', 'Note'][kind],
                        (kind === 0 ? ticksText(ticks) + ': ' : count(ticks) + ' ') +
                                name +
                                (share ? ' (' + percent(share) + ')' : ''),
                );
        if (!facts.losses.some(l => l[3] === 0)) row('Lost', 'nothing');
        for (const note of facts.notes) row('Note', note);
        return rows;
}
