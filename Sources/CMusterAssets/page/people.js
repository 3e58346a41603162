'use strict';
// The list of the channel's members, in which those of lower roles can be muted for everyone or
// removed from the call.

// The member whose removal from the call waits for the second click, until a time in ms.
let removing = { id: null, until: 0 };

function showRoster({ self, members, call }) {
  const all = [{ ...self, isOwn: true }, ...members];
  setText($('count'), String(all.length));
  const shown = all.map((member) => [
    member.id, member.name, member.role, member.inCall, member.audioMuted, member.videoMuted,
    call?.initiator === member.id, (member.streams ?? []).map(({ stream }) => stream),
    member.mayModerate, removing.id === member.id,
  ]);
  fill($('roster'), shown, () => all.map((member) => rosterItem(member, call)));
}

function rosterItem(member, call) {
  const item = document.createElement('li');
  const who = document.createElement('span');
  const state = document.createElement('small');
  who.className = 'who';
  who.textContent = member.isOwn ? `${member.name} (you)` : member.name;
  const parts = [member.inCall ? 'in the call' : 'watching'];
  if (member.inCall && call?.initiator === member.id) parts.push('leads it');
  // Presenter is the default role: all members of an open channel have it.
  if (member.role !== 'presenter') parts.push(member.role);
  for (const { stream } of member.streams ?? []) parts.push(`shares ${stream}`);
  state.textContent = parts.join(' · ');
  who.append(state);
  item.append(dot(member), who);
  if (member.inCall && member.audioMuted) item.append(icon('i-mic-off'));
  if (member.inCall && member.videoMuted) item.append(icon('i-cam-off'));
  if (member.inCall && member.mayModerate) item.append(moderation(member));
  return item;
}

/// The buttons that mute a member for everyone, or remove it from the call.
function moderation({ id, name, audioMuted, videoMuted, streams }) {
  const shown = [
    !audioMuted && ['i-mic-off', `Mute ${name} for everyone`, 'audio'],
    !videoMuted && ['i-cam-off', `Stop the video of ${name} for everyone`, 'video'],
    streams.length > 0 && ['i-share-off', `Stop the sharing of ${name} for everyone`, 'share'],
  ].filter(Boolean).map(([symbol, title, media]) => {
    const button = sheetButton(title, () => command('mute-member', { member: id, media }));
    button.dataset.mutes = media;
    button.append(icon(symbol));
    return button;
  });
  const isAsked = removing.id === id;
  const button = sheetButton(`Remove ${name} from the call`, () => remove(id));
  button.dataset.removes = isAsked ? 'now' : 'asks';
  button.classList.toggle('sure', isAsked);
  button.append(icon('i-leave'), isAsked ? 'Really remove?' : 'Remove');
  const row = document.createElement('div');
  row.className = 'moderation';
  row.append(...shown, button);
  return row;
}

function sheetButton(title, act) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'small';
  button.title = title;
  button.setAttribute('aria-label', title);
  button.onclick = (event) => {
    // A click outside the list closes it, and this button is replaced before that is known.
    event.stopPropagation();
    act();
  };
  return button;
}

/// Removes a member from the call at the second click within a few seconds.
function remove(id) {
  const isSure = removing.id === id && Date.now() < removing.until;
  removing = isSure ? { id: null, until: 0 } : { id, until: Date.now() + 4000 };
  if (isSure) command('remove-from-call', { member: id });
  showRoster(snapshot);
}

/// Takes back the question whether to remove somebody that was not answered in time.
function forgetRemoval() {
  if (!removing.id || Date.now() < removing.until) return;
  removing = { id: null, until: 0 };
  showRoster(snapshot);
}

document.addEventListener('click', (event) => {
  if (!$('people').contains(event.target)) $('people').open = false;
});
