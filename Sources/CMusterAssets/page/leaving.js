'use strict';
// Asks an initiator that leaves a call whether the others are to go on without it.

/// Whether others would lose the call if this node left it.
function leadsOthers() {
  const { self, call } = snapshot;
  return self.inCall && call?.initiator === self.id && call.participants.length > 1;
}

/// Shows who would lead the call, or closes the question if there is nothing left to ask.
function showLeaving() {
  if (!$('leaving').open) return;
  if (!leadsOthers() || link !== 'up') return $('leaving').close();
  const { successor } = snapshot.call;
  $('hand-over').hidden = !successor;
  setText($('hand-over'), `Hand over to ${successor} and leave`);
  setText($('leaving-text'), successor
    ? 'You lead it. The others can go on without you.'
    : 'You lead it, and nobody else in it may: it ends when you leave.');
}

function leave() {
  if (!leadsOthers()) return command('leave-call');
  if (!$('leaving').open) $('leaving').showModal();
  showLeaving();
}

for (const [id, fields] of [['hand-over', { handOver: true }], ['end-call', {}]]) {
  $(id).onclick = () => {
    command('leave-call', fields);
    $('leaving').close();
  };
}
$('stay').onclick = () => $('leaving').close();
