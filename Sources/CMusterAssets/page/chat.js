'use strict';
// The text messages and their input field. Texts are set through textContent, never as HTML.

/// The maximum size of a message in UTF-8 bytes, equal to `Limits.textBytes`.
const TEXT_BYTES = 768;

/// What the page keeps of each channel's messages, by the channel's id: the ids of those that have
/// been here, the number of unread ones, and the draft while another channel is shown.
const chats = new Map();
const noDraft = { value: '', to: '', toName: 'Everyone' };
let shownChat = '';
/// The text sent last, and its channel, until it is known whether it was refused.
let unsent = null;

function showChat({ channelID, self, members, messages, rooms }) {
  noteNew(rooms, channelID);
  const list = $('messages');
  const isAtEnd = channelID !== shownChat
    || list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  if (channelID !== shownChat) changeDraft(channelID);
  const shown = messages.map(({ id, name, toName }) => [id, name, toName]);
  fill(list, shown, () => messages.map((message) => messageItem(message, self)));
  if (isAtEnd) list.scrollTop = list.scrollHeight;
  $('no-messages').hidden = messages.length > 0;
  const receivers = [['', 'Everyone'], ...members.map(({ id, name }) => [id, `Only ${name}`])];
  const chosen = $('to').value;
  // A recipient that has just left stays selected and gets the message later; a fallback to
  // "Everyone" would disclose the message.
  if (!receivers.some(([id]) => id === chosen)) {
    receivers.push([chosen, $('to').selectedOptions[0].text]);
  }
  fill($('to'), receivers, () => receivers.map(([id, name]) => new Option(name, id)));
  if ($('to').value !== chosen) $('to').value = chosen;
  $('send').disabled = self.role === 'none';
}

/// Keeps the text and the recipient that are being written, and shows those of another channel.
function changeDraft(channelID) {
  const left = chats.get(shownChat);
  if (left) {
    left.draft = {
      value: $('text').value, to: $('to').value, toName: $('to').selectedOptions[0].text,
    };
  }
  const { value, to, toName } = chats.get(channelID)?.draft ?? noDraft;
  shownChat = channelID;
  $('text').value = value;
  fill($('to'), [[to, toName]], () => [new Option(toName, to)]);
}

/// Counts the messages of each channel that came while they could not be seen, and notifies the
/// user once. Those that the page finds in a channel at first are not new.
function noteNew(rooms, channelID) {
  for (const id of chats.keys()) if (!rooms.some((room) => room.channelID === id)) chats.delete(id);
  for (const { channelID: key, channel, self, messages } of rooms) {
    const ids = new Set(messages.map(({ id }) => id));
    const chat = chats.get(key) ?? { known: ids, unread: 0, draft: { ...noDraft } };
    chats.set(key, chat);
    const fresh = messages.filter(({ id, from }) => !chat.known.has(id) && from !== self.id);
    chat.known = ids;
    if (key === channelID && !$('chat').hidden) continue;
    chat.unread += fresh.length;
    const where = key === channelID ? '' : ` in ${channel}`;
    for (const { name, text } of fresh.slice(-3)) toast(`${name}${where}: ${shortened(text)}`);
  }
  markRead(channelID);
}

/// Shows the number of unread messages of the channel, which is none while they are open.
function markRead(channelID) {
  const chat = chats.get(channelID);
  if (chat && !$('chat').hidden) chat.unread = 0;
  showCount($('unread'), unreadIn(channelID));
}

function unreadIn(channelID) {
  return chats.get(channelID)?.unread ?? 0;
}

function showCount(badge, count) {
  badge.hidden = count === 0;
  setText(badge, count > 99 ? '99+' : String(count));
}

function shortened(text) {
  const letters = [...text];
  return letters.length > 120 ? `${letters.slice(0, 119).join('')}…` : text;
}

function nameOf(id, self, members) {
  if (id === self.id) return 'you';
  return members.find((member) => member.id === id)?.name ?? id;
}

function messageItem(message, self) {
  const item = document.createElement('li');
  const head = document.createElement('p');
  const text = document.createElement('p');
  const who = document.createElement('b');
  const isOwn = message.from === self.id;
  who.textContent = isOwn ? 'You' : message.name;
  const receiver = message.to === self.id ? 'you' : message.toName;
  const to = message.to ? ` to ${receiver} only` : '';
  head.className = 'hint';
  head.append(who, `${to} · ${moment(message.sentAt)}`);
  text.textContent = message.text;
  item.className = isOwn ? 'own' : '';
  item.append(head, text);
  return item;
}

/// The time of day, with the date unless it is today.
function moment(milliseconds) {
  const date = new Date(milliseconds);
  const clock = { hour: '2-digit', minute: '2-digit' };
  const isToday = date.toDateString() === new Date().toDateString();
  if (isToday) return date.toLocaleTimeString([], clock);
  return date.toLocaleString([], { day: 'numeric', month: 'short', ...clock });
}

function openChat(isOpen) {
  $('chat').hidden = !isOpen;
  $('talk').setAttribute('aria-expanded', String(isOpen));
  document.body.classList.toggle('chatting', isOpen);
  if (!isOpen) return $('talk').focus();
  markRead(shownChat);
  $('messages').scrollTop = $('messages').scrollHeight;
  $('text').focus();
}

/// Restores a text that could not be sent, unless another one has been begun in its channel.
function textRefused() {
  const field = unsent?.channelID === shownChat ? $('text') : chats.get(unsent?.channelID)?.draft;
  if (field?.value === '') field.value = unsent.text;
  unsent = null;
}

$('write').onsubmit = (event) => {
  event.preventDefault();
  const text = $('text').value.trim();
  if (!text) return;
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > TEXT_BYTES) {
    return toast(`The text is too long by ${bytes - TEXT_BYTES} bytes.`, true);
  }
  unsent = { channelID: shownChat, text };
  command('say', $('to').value ? { text, to: $('to').value } : { text });
  $('text').value = '';
};
$('talk').onclick = () => openChat($('chat').hidden);
