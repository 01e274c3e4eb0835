/* The state of the page and what follows from it. Panels read app.state, and change it by the calls below. */

const app = {
	profile: null, aggregate: null, mixes: null, mode: null, match: null, matches: null,
	state: {
		from: 0, to: 0,                 /* selected buckets: from .. to - 1 */
		filter: { state: -1, zone: -1, thread: -1 },
		tree: 'calls', direction: 'icicle', color: 'kind', width: 'after', unit: 'percent', theme: 'auto',
		key: 'function', sort: { column: 'self', down: true }, side: 'source',
		search: '', selected: NO_GROUP, line: 0,
		zoom: [],                       /* functions from the root to the node that is as wide as the panel */
	},

	set(changes) {
		const data = ['filter'], tree = ['tree', 'width'], { state } = app;
		const changed = Object.keys(changes).filter(k => state[k] !== changes[k]);

		Object.assign(state, changes);
		if (changed.includes('theme'))
			applyTheme(state.theme);
		if (changed.includes('color'))
			app.chooseMode();
		if (changed.some(k => tree.includes(k)))
			state.zoom = [];
		if (changed.some(k => data.includes(k)))
			app.recount();
		else if (changed.some(k => tree.includes(k)))
			app.makeTree();
		if (changed.includes('key'))
			app.table.setData();
		if (changed.includes('direction'))
			app.flame.turn();
		if (changed.includes('side') || changed.includes('unit'))
			app.source.setData();
		app.refresh();
	},

	/* All that depends on which samples are selected. */
	recount() {
		const { from, to, filter } = app.state;

		app.aggregate = new Aggregate(app.profile, { from, to, ...filter });
		app.calls = null;
		app.mixes = app.mode.ofContext ? new Mixes(app.aggregate, app.mode) : null;
		app.makeTree();
		app.timeline.setData();
		app.table.setData();
		app.source.setData();
		app.refresh();
	},

	callTree() {
		app.calls = app.calls || new CallTree(app.aggregate, false);
		return app.calls;
	},

	makeTree() {
		const before = app.profile.base && app.state.width === 'before';

		app.tree = app.state.tree === 'inverse' ? new InverseTree(app.aggregate, before) : new CallTree(app.aggregate, before);
		app.flame.setTree(app.tree);
	},

	chooseMode() {
		app.modes = app.modes || {};
		app.mode = app.modes[app.state.color] = app.modes[app.state.color] || COLOR_MODES[app.state.color].make(app.profile);
		if (app.aggregate)
			app.mixes = app.mode.ofContext ? new Mixes(app.aggregate, app.mode) : null;
	},

	nextColor() {
		const names = colorChoices().map(c => c[0]);

		app.set({ color: names[(names.indexOf(app.state.color) + 1) % names.length] });
	},

	colorOf(tree, node) {
		const func = tree.func[node], f = app.profile.functions[func];

		if (app.profile.base) {
			const a = app.aggregate, now = a.ticks ? tree.total[node] / a.ticks : 0, was = a.base.ticks ? tree.baseTotal[node] / a.base.ticks : 0;

			return changeColor((now - was) / Math.max(now, was, 1e-12));
		}
		const mix = app.mode.ofContext ? app.mixes.of(tree, node) : null;
		const category = app.mode.ofFunction ? app.mode.ofFunction(func, mix) : most(mix, -1);

		return soft(f.kind === KIND_PSEUDO || category < 0 ? [0, 0] : app.mode.list[category].hue, shadeOf(f.name));
	},

	/* Whether a function is one that is searched for. */
	isMatch(func) {
		return !app.matches || app.matches[func] === 1;
	},

	search(text) {
		app.state.search = text;
		app.match = matcher(text);
		app.matches = app.match ? Uint8Array.from(app.profile.functions, f => app.match(f.name) ? 1 : 0) : null;
		if ($('search').value !== text)
			$('search').value = text;
		app.table.arrange();
		app.refresh();
	},

	/* Ticks with a function that is searched for on the stack. */
	matchedTicks() {
		const tree = app.callTree(), under = new Uint8Array(tree.total.length);
		let sum = 0;

		for (let i = 1; i < under.length; i++) {
			under[i] = under[tree.parent[i]];
			if (!under[i] && app.matches[tree.func[i]]) {
				under[i] = 1;
				sum += tree.total[i];
			}
		}
		return sum;
	},

	select(func, line) {
		app.state.selected = func;
		app.state.line = line || 0;
		app.source.setData();
		app.refresh();
	},

	zoom(path) {
		app.state.zoom = path;
		app.flame.zoomTo(path, true);
		app.refresh();
	},

	zoomToFocus() {
		if (app.flame.focus)
			app.zoom(pathOf(app.tree, app.flame.focus));
	},

	selectTime(from, to) {
		if (from === app.state.from && to === app.state.to)
			return;
		app.state.from = from;
		app.state.to = to;
		app.recountSoon();
	},

	escape() {
		const { state } = app;

		if (state.search || document.activeElement === $('search')) {
			app.search('');
			document.activeElement.blur();
		} else if (state.zoom.length) {
			app.zoom([]);
		} else if (state.selected !== NO_GROUP) {
			app.flame.focus = 0;
			app.select(NO_GROUP);
		} else {
			app.selectTime(0, app.profile.time.buckets);
		}
	},

	/* What is cheap to make anew at any change. */
	refresh() {
		showControls();
		showSelection();
		showZoom();
		app.flame.draw();
		app.timeline.draw();
		app.table.draw();
	},
};

function colorChoices() {
	return app.profile.base ? [['change', 'Change', 'red: more than before, blue: less']]
		: Object.entries(COLOR_MODES).filter(([name]) => name === 'kind' || name === 'module' || app.profile[name + 's'].length > 1)
			.map(([name, m]) => [name, m.label, 'colour by ' + m.help + ' (c)']);
}

function showControls() {
	const { state } = app, choose = name => value => app.set({ [name]: value });

	segmented('pick-direction', [['icicle', 'Icicle', 'root at the top (f)'], ['flame', 'Flame', 'root at the bottom (f)']], state.direction, choose('direction'));
	segmented('pick-tree', [['calls', 'Calls', 'callers, then what they called (i)'], ['inverse', 'Inverse', 'what ran, then its callers (i)']], state.tree, choose('tree'));
	segmented('pick-color', colorChoices(), app.profile.base ? 'change' : state.color, app.profile.base ? () => {} : choose('color'));
	segmented('pick-unit', [['percent', '%', 'shares (u)'], ['ticks', 'ticks', 'ticks (u)'], ['time', 'time', 'CPU time (u)']], state.unit, choose('unit'));
	segmented('pick-key', Object.entries(KEYS).map(([name, k]) => [name, k.label]), state.key, choose('key'));
	segmented('pick-side', [['source', 'Source'], ['calls', 'Callers & callees']], state.side, choose('side'));
	if (app.profile.base)
		segmented('pick-width', [['after', 'After', 'widths of the later recording'], ['before', 'Before', 'widths of the earlier one']], state.width, choose('width'));
	$('pick-width').hidden = !app.profile.base;
}

/* The states with their shares: a click shows one alone. Below, those of the colouring, when they are others. */
function showSelection() {
	const { profile, aggregate, state } = app, all = profile.header.ticks, sums = aggregate.sumBy('state', profile.states.length);
	const chip = (hue, label, share, pressed, act) => el('button', { type: 'button', class: 'chip', disabled: !act, 'aria-pressed': String(pressed), onclick: act || undefined },
		el('i', { style: { background: strong(hue) } }), el('span', {}, cut(label, 60)), share === null ? null : el('b', {}, share));

	$('time-text').textContent = app.timeline.text();
	$('selected-ticks').textContent = count(aggregate.ticks) + ' ticks' + (aggregate.ticks === all ? '' : ' \u00b7 ' + percent(all ? aggregate.ticks / all : 0));
	$('time-clear').hidden = state.from === 0 && state.to === profile.time.buckets;
	$('states').replaceChildren(...profile.states.map((s, i) => ({ s, i })).filter(({ i }) => app.everByState[i] > 0).map(({ s, i }) =>
		chip(STATE_HUES[s.name] || [0, 0], s.label, percent(aggregate.ticks ? sums[i] / aggregate.ticks : 0), state.filter.state === i, () => toggle('state', i))));
	const legend = profile.base || state.color === 'kind' ? [] : app.mode.list;

	$('legend').replaceChildren(...(profile.base ? [el('span', { class: 'scale' }, 'less ', el('i'), ' more')] : []), ...legend.map(c =>
		chip(c.hue, c.label, null, app.mode.filter && state.filter[app.mode.filter] === c.value,
			c.value < 0 ? null : app.mode.filter ? () => toggle(app.mode.filter, c.value) : () => app.search(c.label === state.search ? '' : c.label))));
	$('found').textContent = app.match ? 'found in ' + percent(aggregate.ticks ? app.matchedTicks() / aggregate.ticks : 0) : '';
}

function toggle(column, value) {
	app.set({ filter: { ...app.state.filter, [column]: app.state.filter[column] === value ? -1 : value } });
}

/* The path that the flame graph is zoomed to. */
function showZoom() {
	const { zoom } = app.state, name = f => cut(app.profile.functions[f].name, 60);
	const first = Math.max(0, zoom.length - 4);

	$('crumbs').replaceChildren(el('button', { type: 'button', disabled: !zoom.length, onclick: () => app.zoom([]) }, 'all'),
		...(first ? [el('span', {}, '\u2026')] : []),
		...zoom.slice(first).map((f, i) => el('button', { type: 'button', disabled: first + i === zoom.length - 1, onclick: () => app.zoom(zoom.slice(0, first + i + 1)) }, name(f))));
}

function applyTheme(name) {
	isDark = name === 'dark' || (name === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
	document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
	try {
		if (name !== 'auto')
			localStorage.setItem('luasample-theme', name);
	} catch {
		/* a file may have no storage: then the choice lasts as long as the page */
	}
	if (app.aggregate) {
		app.source.setData();
		app.refresh();
	}
}

function storedTheme() {
	try {
		return localStorage.getItem('luasample-theme') || 'auto';
	} catch {
		return 'auto';
	}
}

/* Zones and threads to choose from, where there is more than one. */
function fillChoices(id, column, texts) {
	const box = $(id);

	box.parentElement.hidden = texts.length < 2;
	box.replaceChildren(el('option', { value: '-1' }, 'all ' + column + 's'), ...texts.slice(0, 1000).map((t, i) => el('option', { value: String(i) }, cut(t, 80))));
	box.addEventListener('change', () => app.set({ filter: { ...app.state.filter, [column]: Number(box.value) } }));
}

/* A bar between two panels: dragging it, or its arrow keys, gives one of them more room. */
function splitter(id, property, along) {
	const bar = $(id), root = document.documentElement;
	const move = at => {
		const box = bar.parentElement.getBoundingClientRect();
		const share = along === 'y' ? 100 - (at - box.top) / box.height * 100 : (at - box.left) / box.width * 100;

		root.style.setProperty(property, Math.max(15, Math.min(80, share)).toFixed(1) + '%');
	};

	bar.addEventListener('pointerdown', e => { bar.setPointerCapture(e.pointerId); bar.dataset.drag = '1'; });
	bar.addEventListener('pointermove', e => { if (bar.dataset.drag) move(along === 'y' ? e.clientY : e.clientX); });
	bar.addEventListener('pointerup', () => { delete bar.dataset.drag; });
	bar.addEventListener('keydown', e => {
		const by = { ArrowUp: -20, ArrowLeft: -20, ArrowDown: 20, ArrowRight: 20 }[e.key], box = bar.getBoundingClientRect();

		if (by) {
			e.preventDefault();
			e.stopPropagation();
			move((along === 'y' ? box.top : box.left) + by);
		}
	});
}

function start() {
	app.profile = new Profile(decode(JSON.parse($('data').textContent)));
	app.state.to = app.profile.time.buckets;
	app.state.theme = storedTheme();
	applyTheme(app.state.theme);
	app.flame = new Flame();
	app.timeline = new Timeline();
	app.table = new Table();
	app.source = new Source();
	app.recountSoon = soon(() => app.recount());
	app.chooseMode();
	showHeader(app.profile);
	showShortcuts();
	fillChoices('pick-zone', 'zone', app.profile.zones);
	fillChoices('pick-thread', 'thread', app.profile.threads);
	splitter('split-rows', '--lower', 'y');
	splitter('split-columns', '--left', 'x');
	app.everByState = new Aggregate(app.profile, { from: 0, to: app.state.to, state: -1, zone: -1, thread: -1 }).sumBy('state', app.profile.states.length);
	$('nothing').hidden = app.profile.header.ticks > 0;
	$('search').addEventListener('input', e => app.search(e.target.value));
	$('time-clear').addEventListener('click', () => app.selectTime(0, app.profile.time.buckets));
	$('theme').addEventListener('click', () => app.set({ theme: isDark ? 'light' : 'dark' }));
	$('help-open').addEventListener('click', () => $('help').showModal());
	for (const d of document.querySelectorAll('dialog'))
		d.addEventListener('click', e => { if (e.target === d) d.close(); });
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyTheme(app.state.theme));
	document.addEventListener('keydown', onShortcut);
	app.recount();
}

start();
/* For the console, and for tests: the data and the state are there to look at. */
globalThis.luasamplePage = app;
