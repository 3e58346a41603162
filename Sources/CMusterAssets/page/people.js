'use strict';
// The list of the channel's members, in which those of lower roles can be muted for everyone or
// removed from the call.

/// The member whose removal from the call waits for the second click, with the channel of the call,
/// until a time in ms.
const noRemoval = { id: null, channelID: null, until: 0 };
let removing = noRemoval;
/// The line of each member, by the member's id.
const lines = new Map();

/// Changes lines and buttons in place, so that the one in use keeps the focus.
function showRoster({ channelID, self, members, call }) {
  if (removing.channelID !== channelID) removing = noRemoval;
  const all = [{ ...self, isOwn: true }, ...members];
  setText($('count'), String(all.length));
  const focused = $('roster').contains(document.activeElement) ? document.activeElement : null;
  for (const id of lines.keys()) if (!all.some((member) => member.id === id)) lines.delete(id);
  place($('roster'), all.map((member) => {
    if (!lines.has(member.id)) lines.set(member.id, new Line(member.id));
    return lines.get(member.id).show(member, call);
  }));
  if (focused && !focused.isConnected) refocus(focused);
}

/// Moves the focus from a button that has gone to the one that removes the same member, or else to
/// the one that opens the list.
function refocus(gone) {
  const line = lines.get(gone.dataset.member);
  const next = line?.remove.isConnected ? line.remove : $('people').firstElementChild;
  next.focus();
}

/// One member: initials, name and state, and buttons to mute it for everyone or to remove it from
/// the call.
class Line {
  constructor(id) {
    this.id = id;
    this.dot = dot({ id, name: '' });
    this.who = document.createElement('span');
    this.who.className = 'who';
    this.state = document.createElement('small');
    this.who.append('', this.state);
    this.signs = ['i-mic-off', 'i-cam-off'].map(icon);
    this.mutes = ['audio', 'video', 'share'].map((media) => this.muteButton(media));
    this.remove = this.button(() => remove(id));
    this.remove.append(icon('i-leave'), document.createElement('span'));
    this.moderation = document.createElement('div');
    this.moderation.className = 'moderation';
    this.element = document.createElement('li');
  }

  button(act) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'small';
    button.dataset.member = this.id;
    button.onclick = act;
    // A key that is held down would answer the question as well.
    button.onkeydown = (event) => {
      if (event.repeat) event.preventDefault();
    };
    return button;
  }

  muteButton(media) {
    const button = this.button(() => command('mute-member', { member: this.id, media }));
    button.dataset.mutes = media;
    button.append(icon({ audio: 'i-mic-off', video: 'i-cam-off', share: 'i-share-off' }[media]));
    return button;
  }

  show(member, call) {
    const { name, inCall, audioMuted, videoMuted } = member;
    const streams = member.streams ?? [];
    const parts = [inCall ? 'in the call' : 'watching'];
    if (inCall && call?.initiator === this.id) parts.push('leads it');
    // Presenter is the default role: all members of an open channel have it.
    if (member.role !== 'presenter') parts.push(member.role);
    for (const { stream } of streams) parts.push(`shares ${stream}`);
    setText(this.dot, initials(name));
    this.who.firstChild.data = member.isOwn ? `${name} (you)` : name;
    setText(this.state, parts.join(' · '));
    const isModerated = inCall && member.mayModerate;
    if (isModerated) this.showButtons(name, [!audioMuted, !videoMuted, streams.length > 0]);
    place(this.element, [
      this.dot, this.who, ...this.signs.filter((_, i) => inCall && [audioMuted, videoMuted][i]),
      ...(isModerated ? [this.moderation] : []),
    ]);
    return this.element;
  }

  /// Shows the buttons that can do something: to mute what is on, and to remove the member.
  showButtons(name, isOn) {
    const titles = [
      `Mute ${name} for everyone`, `Stop the video of ${name} for everyone`,
      `Stop the sharing of ${name} for everyone`,
    ];
    this.mutes.forEach((button, index) => label(button, titles[index]));
    const isAsked = removing.id === this.id;
    label(this.remove, isAsked ? `Really remove ${name}?` : `Remove ${name} from the call`);
    setText(this.remove.lastElementChild, isAsked ? 'Really remove?' : 'Remove');
    this.remove.dataset.removes = isAsked ? 'now' : 'asks';
    this.remove.classList.toggle('sure', isAsked);
    place(this.moderation, [...this.mutes.filter((_, index) => isOn[index]), this.remove]);
  }
}

function label(button, title) {
  if (button.title === title) return;
  button.title = title;
  button.setAttribute('aria-label', title);
}

/// Removes a member from the call at the second click within a few seconds.
function remove(id) {
  const isSure = removing.id === id && Date.now() < removing.until;
  const { channelID } = snapshot;
  removing = isSure ? noRemoval : { id, channelID, until: Date.now() + 4000 };
  if (isSure) command('remove-from-call', { member: id });
  showRoster(snapshot);
}

/// Takes back the question whether to remove somebody that was not answered in time.
function forgetRemoval() {
  if (!removing.id || Date.now() < removing.until) return;
  removing = noRemoval;
  showRoster(snapshot);
}

document.addEventListener('click', (event) => {
  if (!$('people').contains(event.target)) $('people').open = false;
});
