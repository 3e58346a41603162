'use strict';
// Displays the newest snapshot of the node's state and sends commands to the node. tiles.js
// contains the cards and helpers, stage.js their arrangement, people.js the list of members,
// chat.js the messages, and leaving.js the question to an initiator that leaves.

const cards = new Map();
let snapshot = null;
let link = 'connecting';
let downSince = 0;
let entering = false;
// For tests: the counters of every tile, and the time in ms at which they were read.
window.__stats = {};
window.__statsAt = 0;

// ---- Whole page ---------------------------------------------------------------------------------

function show(next) {
  const before = snapshot;
  const isSwitched = before && before.channelID !== next.channelID;
  snapshot = next;
  const { self, members, call, channel } = next;
  document.title = call ? `${channel} · in call` : channel;
  if (call && !self.inCall) document.title = `${channel} · call ongoing`;
  setText($('channel'), channel);
  // Channels of the same name differ in these.
  const identity = channel ? `${next.kind} channel ${next.channelID}` : '';
  $('channel').title = identity;
  setText($('lobby-channel'), identity);
  document.body.dataset.view = self.inCall ? 'call' : 'lobby';
  if (isSwitched || (before && before.self.inCall !== self.inCall)) entering = false;
  // The question is about the call of another channel.
  if (isSwitched) $('leaving').close();
  showRoster(next);
  showLobby(next);
  showControls(self);
  showGrid(next);
  showChat(next);
  showChannels(next);
  showClock();
  showLink();
  if (before && !isSwitched) showChanges(before, next);
  showNotices(before?.notices ?? [], next.notices);
}

/// Shows the notices that are new, which may have the text of earlier ones.
function showNotices(before, notices) {
  const times = (text, all) => all.filter((one) => one === text).length;
  for (const text of new Set(notices)) {
    if (times(text, notices) > times(text, before)) toast(text);
  }
}

/// The button of each channel, by the channel's id.
const tabs = new Map();

/// Shows one button for each channel if there are several.
function showChannels({ channelID, rooms }) {
  for (const id of tabs.keys()) if (!rooms.some((room) => room.channelID === id)) tabs.delete(id);
  $('channels').hidden = rooms.length < 2;
  place($('channels'), rooms.map((room) => tabOf(room, room.channelID === channelID)));
}

function tabOf({ channelID, channel, call }, isShown) {
  if (!tabs.has(channelID)) tabs.set(channelID, $('tab').content.firstElementChild.cloneNode(true));
  const tab = tabs.get(channelID);
  const [name, sign, badge] = tab.children;
  const wasShown = tab.getAttribute('aria-pressed') === 'true';
  // The messages of the channel that is shown are counted at the button that opens them.
  const count = isShown ? 0 : unreadIn(channelID);
  setText(name, channel);
  sign.toggleAttribute('hidden', !call);
  showCount(badge, count);
  const parts = [channel, call && 'call going on', count > 0 && `${count} unread`];
  tab.title = parts.filter(Boolean).join(', ');
  tab.setAttribute('aria-label', tab.title);
  tab.setAttribute('aria-pressed', String(isShown));
  tab.onclick = () => worker.postMessage({ kind: 'choose', channel });
  if (isShown && !wasShown) {
    requestAnimationFrame(() => tab.scrollIntoView({ block: 'nearest', inline: 'nearest' }));
  }
  return tab;
}

/// Notifies the user of a changed role and of a new initiator.
function showChanges(before, { self, members, call }) {
  if (before.self.role !== self.role) toast(`Your role is ${self.role} now.`);
  if (before.call?.id !== call?.id || before.call?.initiator === call?.initiator) return;
  const leads = call.initiator === self.id
    ? 'You lead' : `${nameOf(call.initiator, self, members)} leads`;
  const former = before.call.initiator === self.id
    ? 'you' : nameOf(before.call.initiator, self, before.members);
  toast(`${leads} the call now, ${former} did before.`);
}

function showGrid({ self, members, call }) {
  const others = self.inCall ? members.filter((member) => member.inCall).flatMap(streams) : [];
  const wanted = new Set(others.map((member) => member.id));
  for (const [id, card] of cards) {
    if (wanted.has(id) || card.isOwn) continue;
    card.remove();
    cards.delete(id);
  }
  for (const member of others) {
    if (!cards.has(member.id)) {
      const card = new Card(member, false);
      cards.set(member.id, card);
      $('grid').append(card.element);
    }
    cards.get(member.id).update(member);
  }
  $('alone').hidden = !self.inCall || others.length > 0;
  showOwn(self);
  noteSpeaker(self, call);
  arrange();
}

/// What the snapshot says of the camera's video, and leaves out where there is none.
const noVideo = {
  width: null, height: null, fps: null, kbps: null, layer: null, why: null, frozenMs: null,
};

/// A member, followed by its video streams besides the camera in the form of members.
function streams(member) {
  return [member, ...member.streams.map((stream) => ({
    ...member, ...noVideo, ...stream, id: `${member.id}/${stream.stream}`,
    name: `${member.name}: ${stream.stream}`, audioMuted: false, videoMuted: false, speaking: false,
  }))];
}

function showOwn(self) {
  let card = cards.get(self.id);
  if (!card) {
    for (const [id, old] of cards) if (old.isOwn) { old.remove(); cards.delete(id); }
    card = new Card(self, true);
    cards.set(self.id, card);
    $('me').append(card.element);
  }
  // After a call, its last frame goes as well.
  card.update({ ...self, tile: self.inCall && self.hasVideo ? 0 : null });
  card.element.hidden = !self.inCall;
}

function showLobby({ self, members, call, endedBy }) {
  if (self.inCall) return;
  const inside = members.filter((member) => call?.participants.includes(member.id));
  $('lobby-faces').hidden = inside.length === 0;
  fill($('lobby-faces'), inside.map(({ id, name }) => [id, name]), () => faces(inside));
  setText($('lobby-title'), call ? 'A call is going on' : 'No call at the moment');
  setText($('lobby-text'), call ? callText(call, inside) : quietText({ self, members, endedBy }));
  $('enter').disabled = entering || link !== 'up' || self.role === 'none'
    || (call ? Boolean(call.removedBy) : !self.mayStart);
  setText($('enter'), entering ? 'One moment…' : call ? 'Join the call' : 'Start a call');
  const sources = [
    self.hasAudio ? `microphone ${self.audioMuted ? 'off' : 'on'}` : 'no microphone',
    self.hasVideo ? `camera ${self.videoMuted ? 'off' : 'on'}` : 'no camera',
  ].join(', ');
  const asListener = self.role === 'none' ? '' : `You enter to listen: your role is ${self.role}.`;
  setText($('lobby-sources'), self.maySend ? `You enter with ${sources}.` : asListener);
}

function faces(members) {
  const all = members.slice(0, 6).map(dot);
  if (members.length > 6) {
    const more = document.createElement('span');
    more.className = 'dot more';
    more.textContent = `+${members.length - 6}`;
    all.push(more);
  }
  return all;
}

/// The description of a call for a member outside it: start time, number and names of participants,
/// or who removed this node from it.
function callText(call, inside) {
  if (call.removedBy) {
    return `${call.removedBy} removed you from this call. You can join the next one.`;
  }
  const names = inside.slice(0, 3).map((member) => member.name);
  if (inside.length > 3) names.push(`${inside.length - 3} more`);
  const who = names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names.at(-1)}` : names[0];
  const count = call.participants.length;
  return `Call ongoing since ${moment(call.startedAt)} with ${count}${who ? `: ${who}` : ''}.`;
}

/// Describes a channel without a call: names the member that ended the last one, then the members
/// that are there.
function quietText({ self, members, endedBy }) {
  const waiting = waitingText(self, members);
  return endedBy ? `${endedBy} ended the last call for all. ${waiting}` : waiting;
}

function waitingText(self, members) {
  if (self.role === 'none') return 'The others here do not take you for a member.';
  if (!self.mayStart) return `Your role, ${self.role}, lets you join a call, but not start one.`;
  if (!members.length) {
    return 'Nobody else is in this channel yet. They appear here by themselves.';
  }
  if (members.length === 1) return `${members[0].name} is here. Start one and you can both talk.`;
  return `${members.length} others are here. Start one and they can join.`;
}

function showControls(self) {
  const { maySend } = self;
  control('mic', self.hasAudio && maySend, self.audioMuted, ['i-mic', 'Mute'],
    ['i-mic-off', 'Unmute'], maySend ? 'No microphone' : 'Listening');
  control('cam', self.hasVideo && maySend, self.videoMuted, ['i-cam', 'Stop video'],
    ['i-cam-off', 'Start video'], maySend ? 'No camera' : 'Watching');
  $('share').hidden = !self.hasShare;
  control('share', self.hasShare && self.mayShare, !self.sharing, ['i-share', 'Stop sharing'],
    ['i-share-off', 'Share'], 'No sharing');
  $('leave').disabled = link !== 'up';
  showLeaving();
}

const keys = { mic: 'M', cam: 'V', share: 'S' };

function control(id, isThere, isOff, on, off, absent) {
  const button = $(id);
  const [symbol, caption] = isOff || !isThere ? off : on;
  button.disabled = !isThere || link !== 'up';
  button.setAttribute('aria-pressed', String(isThere && isOff));
  button.querySelector('use').setAttribute('href', `#${symbol}`);
  setText(button.querySelector('.caption'), isThere ? caption : absent);
  button.title = isThere ? `${caption} (${keys[id]})` : absent;
}

function showClock() {
  const call = snapshot?.call;
  $('clock').hidden = !call;
  // Without the node, nobody knows whether the call goes on.
  if (!call || link !== 'up') return;
  const seconds = Math.max(0, Math.floor((Date.now() - call.startedAt) / 1000));
  const two = (number) => String(number).padStart(2, '0');
  const hours = Math.floor(seconds / 3600);
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  setText($('clock'), hours ? `${hours}:${rest}` : rest);
}

// ---- Connection to the node ---------------------------------------------------------------------

function setLink(state, wasStopped = false) {
  link = state;
  if (state === 'up') downSince = 0;
  else downSince ||= Date.now();
  showLink();
  if (state === 'up') $('gone').hidden = true;
  else if (state === 'silent') showTrouble(trouble.silent);
  else if (state === 'down') showGone(wasStopped);
  entering = false;
  if (snapshot) {
    showControls(snapshot.self);
    showLobby(snapshot);
  }
}

/// Shows the connection to the node or, while there is one, that of the node to its call.
function showLink() {
  const self = snapshot?.self;
  const isCutOff = link === 'up' && self?.inCall && self.callState !== 'connected';
  const isBusy = link === 'up' && self?.inCall && self.cpuStep > 0;
  $('link').className = `link ${isCutOff || isBusy ? 'waiting' : link}`;
  const cutOff = self?.callState === 'connecting' ? 'Connecting' : 'Reconnecting';
  const words = { up: isBusy ? 'Computer busy, less video' : 'Connected', silent: 'Not responding' };
  setText($('link'), isCutOff ? cutOff : words[link] ?? 'Disconnected');
}

const trouble = {
  silent: ['Muster does not respond', 'Nothing has come from it for some seconds: what is shown '
    + 'here is old. This page carries on by itself as soon as Muster responds.'],
  lost: ['Connection to Muster lost', 'Trying to reach the node again. This page carries on by '
    + 'itself as soon as it answers.'],
  stopped: ['Muster is not running', 'The node behind this page has stopped. Start it again and '
    + 'open the address it prints.'],
};

function showTrouble(kind) {
  const [title, text] = kind;
  setText($('gone-title'), title);
  setText($('gone-text'), text);
  // A node that is connected to cannot be connected to again.
  $('retry').hidden = kind === trouble.silent;
  $('gone').hidden = false;
}

function showGone(wasStopped) {
  // A connection lost for less than a second is not reported.
  if (!wasStopped && Date.now() - downSince < 1000 && snapshot) return;
  const isLong = wasStopped || Date.now() - downSince > 8000 || $('gone').dataset.stopped;
  if (wasStopped) $('gone').dataset.stopped = 'yes';
  showTrouble(isLong ? trouble.stopped : trouble.lost);
}

worker.onmessage = ({ data }) => {
  switch (data.kind) {
    case 'link':
      if (data.state === 'up') delete $('gone').dataset.stopped;
      setLink(data.state, data.stopped);
      break;
    case 'message':
      if (data.message.type === 'snapshot') show(data.message.snapshot);
      else if (data.message.type === 'error') {
        entering = false;
        if (snapshot) showLobby(snapshot);
        if (data.message.command === 'say') textRefused();
        toast(data.message.message, true);
      }
      break;
    case 'drawn': {
      const card = cards.get(data.member);
      if (!card || card.tile !== data.tile) break;
      card.drawn(data.width, data.height);
      arrange();
      break;
    }
    case 'sent':
      if (!data.ok && data.command === 'say') textRefused();
      if (!data.ok) toast('Not connected to Muster right now.', true);
      break;
    case 'stats':
      window.__stats = data.all;
      window.__statsAt = data.at;
      break;
    case 'no-decoder':
      toast('This browser cannot decode pictures (no WebCodecs). The controls work.', true);
      break;
  }
};

worker.onerror = () => toast('The page could not start completely. Reload it to try again.', true);

// ---- Input --------------------------------------------------------------------------------------

function toggle(media) {
  const self = snapshot?.self;
  const isOff = { audio: self?.audioMuted, video: self?.videoMuted, share: !self?.sharing }[media];
  command(isOff ? 'unmute' : 'mute', { media });
}

$('mic').onclick = () => toggle('audio');
$('cam').onclick = () => toggle('video');
$('share').onclick = () => toggle('share');
$('leave').onclick = leave;
$('retry').onclick = () => worker.postMessage({ kind: 'retry' });
$('enter').onclick = () => {
  entering = true;
  command(snapshot?.call ? 'join-call' : 'start-call');
  showLobby(snapshot);
};
$('details').onclick = () => {
  const isOn = document.body.classList.toggle('show-details');
  $('details').setAttribute('aria-pressed', String(isOn));
};

document.addEventListener('keydown', (event) => {
  // A question takes the keys, and closes by Escape itself.
  if ($('leaving').open) return;
  if (event.key === 'Escape') {
    if ($('people').contains(document.activeElement)) $('people').firstElementChild.focus();
    $('people').open = false;
    if (!$('chat').hidden) openChat(false);
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  // Letters typed into a field are not shortcuts.
  if (event.target.closest?.('input, select')) return;
  const key = event.key.toLowerCase();
  if (key === 't') {
    event.preventDefault();
    openChat(true);
  }
  if (key === 'd') $('details').click();
  if (!snapshot?.self.inCall) return;
  if (key === 'm') $('mic').click();
  if (key === 'v') $('cam').click();
  if (key === 's' && !$('share').hidden) $('share').click();
});

new ResizeObserver(stageResized).observe($('stage'));
// At once, since timers of a hidden page are late.
document.addEventListener('visibilitychange', tell);
setInterval(() => {
  showClock();
  forgetRemoval();
  if (link === 'down') showGone(false);
}, 1000);

worker.postMessage({
  kind: 'connect', url: `ws://${location.host}/ws?t=${encodeURIComponent(token)}`,
});
