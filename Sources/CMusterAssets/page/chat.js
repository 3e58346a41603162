'use strict';
// The text messages and their input field. Texts are set through textContent, never as HTML.

/// The maximum size of a message in UTF-8 bytes, equal to `Limits.textBytes`.
const TEXT_BYTES = 768;

const chat = { known: null, unread: 0, unsent: null };

function showChat({ self, members, messages }) {
  const list = $('messages');
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
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
  noteNew(messages, self);
}

/// Counts the messages received while the chat was closed, and notifies the user once.
function noteNew(messages, self) {
  const { known } = chat;
  chat.known = new Set(messages.map(({ id }) => id));
  if (known && $('chat').hidden) {
    const fresh = messages.filter(({ id, from }) => !known.has(id) && from !== self.id);
    chat.unread += fresh.length;
    for (const { name, text } of fresh.slice(-3)) toast(`${name}: ${shortened(text)}`);
  }
  $('unread').hidden = chat.unread === 0;
  setText($('unread'), chat.unread > 99 ? '99+' : String(chat.unread));
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
  chat.unread = 0;
  $('unread').hidden = true;
  $('messages').scrollTop = $('messages').scrollHeight;
  $('text').focus();
}

/// Restores a text that could not be sent, unless the input field contains another text.
function textRefused() {
  if (chat.unsent !== null && $('text').value === '') $('text').value = chat.unsent;
  chat.unsent = null;
}

$('write').onsubmit = (event) => {
  event.preventDefault();
  const text = $('text').value.trim();
  if (!text) return;
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > TEXT_BYTES) {
    return toast(`The text is too long by ${bytes - TEXT_BYTES} bytes.`, true);
  }
  chat.unsent = text;
  command('say', $('to').value ? { text, to: $('to').value } : { text });
  $('text').value = '';
};
$('talk').onclick = () => openChat($('chat').hidden);
