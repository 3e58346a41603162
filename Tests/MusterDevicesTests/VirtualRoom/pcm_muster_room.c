// An ALSA device without hardware: a room whose speakers are heard by its microphones.
//
// Built as an external PCM plugin (ioplug), so that the product's ALSA code runs unchanged against
// something that has a real clock, real buffers that run over and under, and a plug to be pulled.
//
//   pcm_type.muster_room { lib "/…/libasound_module_pcm_muster_room.so" }
//   pcm.some_name { type muster_room  room "/…/file"  unplug "/…/file" }
//
// Sample n of the room is what sounds at n / 48,000 s of CLOCK_MONOTONIC. Each is one atomic word
// in a file that all players and listeners map: its number in the upper 40 bits, which tells stale
// from fresh, and the sum of what is played in the lower 24. While the file `unplug` exists, the
// device answers ENODEV, as a pulled USB headset does. One channel, 16 bits, 48 kHz.
#define PIC 1
#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define RATE 48000
#define ROOM_SAMPLES (1 << 17)  // 2.7 s, more than any buffer
#define ROOM_BYTES (ROOM_SAMPLES * sizeof(uint64_t))
#define MAX_BUFFER 48000

typedef struct {
  snd_pcm_ioplug_t plug;
  _Atomic uint64_t *room;
  char *unplug_path;
  int timer;
  int is_running;
  int64_t start_ns;
  int64_t start_sample;
  int64_t transferred;             // samples the application has written or read since prepare
  int16_t waiting[MAX_BUFFER];     // written before the start, when their time is not known yet
} room_pcm;

static int64_t monotonic(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int is_unplugged(const room_pcm *self) {
  return self->unplug_path && access(self->unplug_path, F_OK) == 0;
}

static int64_t elapsed(const room_pcm *self) {
  if (!self->is_running) return 0;
  int64_t ns = monotonic() - self->start_ns;
  return ns / 1000000000 * RATE + ns % 1000000000 * RATE / 1000000000;
}

static void play(room_pcm *self, int64_t sample, int16_t value) {
  _Atomic uint64_t *word = &self->room[sample & (ROOM_SAMPLES - 1)];
  uint64_t old = atomic_load(word), new;
  do {
    int32_t sum = value;
    if (old >> 24 == (uint64_t)sample) sum += (int32_t)(old << 8 & 0xFFFFFFFF) >> 8;
    new = (uint64_t)sample << 24 | ((uint32_t)sum & 0xFFFFFF);
  } while (!atomic_compare_exchange_weak(word, &old, new));
}

static int16_t listen_to(const room_pcm *self, int64_t sample) {
  uint64_t word = atomic_load(&self->room[sample & (ROOM_SAMPLES - 1)]);
  if (word >> 24 != (uint64_t)sample) return 0;
  int32_t sum = (int32_t)(word << 8 & 0xFFFFFFFF) >> 8;
  return (int16_t)(sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum);
}

static void set_timer(room_pcm *self, int64_t period_ns) {
  struct itimerspec every = {{period_ns / 1000000000, period_ns % 1000000000},
                             {period_ns / 1000000000, period_ns % 1000000000}};
  timerfd_settime(self->timer, 0, &every, NULL);
}

static int on_prepare(snd_pcm_ioplug_t *plug) {
  room_pcm *self = plug->private_data;
  self->is_running = 0;
  self->transferred = 0;
  return is_unplugged(self) ? -ENODEV : 0;
}

static int on_start(snd_pcm_ioplug_t *plug) {
  room_pcm *self = plug->private_data;
  if (is_unplugged(self)) return -ENODEV;
  self->start_ns = monotonic();
  self->start_sample =
      self->start_ns / 1000000000 * RATE + self->start_ns % 1000000000 * RATE / 1000000000;
  self->is_running = 1;
  if (plug->stream == SND_PCM_STREAM_PLAYBACK)
    for (int64_t i = 0; i < self->transferred; i++)
      play(self, self->start_sample + i, self->waiting[i]);
  set_timer(self, (int64_t)plug->period_size * 1000000000 / RATE);
  return 0;
}

static int on_stop(snd_pcm_ioplug_t *plug) {
  room_pcm *self = plug->private_data;
  self->is_running = 0;
  set_timer(self, 0);
  return 0;
}

// What the application may transfer now; negative after an over- or underrun.
static int64_t available(const room_pcm *self) {
  int64_t played = elapsed(self);
  if (self->plug.stream == SND_PCM_STREAM_CAPTURE) {
    int64_t heard = played - self->transferred;
    return heard > (int64_t)self->plug.buffer_size ? -1 : heard;
  }
  if (played > self->transferred) return -1;
  return (int64_t)self->plug.buffer_size - (self->transferred - played);
}

static snd_pcm_sframes_t on_pointer(snd_pcm_ioplug_t *plug) {
  room_pcm *self = plug->private_data;
  if (is_unplugged(self)) return -ENODEV;
  if (self->is_running && available(self) < 0) return -EPIPE;
  return elapsed(self) % (int64_t)plug->buffer_size;
}

static snd_pcm_sframes_t on_transfer(snd_pcm_ioplug_t *plug, const snd_pcm_channel_area_t *areas,
                                     snd_pcm_uframes_t offset, snd_pcm_uframes_t size) {
  room_pcm *self = plug->private_data;
  if (is_unplugged(self)) return -ENODEV;
  for (snd_pcm_uframes_t i = 0; i < size; i++) {
    char *place = (char *)areas[0].addr + (areas[0].first + (offset + i) * areas[0].step) / 8;
    int64_t number = self->transferred + (int64_t)i;
    int16_t value;
    if (plug->stream == SND_PCM_STREAM_CAPTURE) {
      value = listen_to(self, self->start_sample + number);
      memcpy(place, &value, sizeof value);
      continue;
    }
    memcpy(&value, place, sizeof value);
    if (self->is_running)
      play(self, self->start_sample + number, value);
    else if (number < MAX_BUFFER)
      self->waiting[number] = value;
  }
  self->transferred += (int64_t)size;
  return (snd_pcm_sframes_t)size;
}

static int on_poll(snd_pcm_ioplug_t *plug, struct pollfd *fds, unsigned count,
                   unsigned short *events) {
  room_pcm *self = plug->private_data;
  uint64_t ticks;
  if (count > 0 && (fds[0].revents & POLLIN) && read(self->timer, &ticks, sizeof ticks) < 0)
    ticks = 0;
  int64_t ready = available(self);
  int is_playback = plug->stream == SND_PCM_STREAM_PLAYBACK;
  *events = 0;
  if (ready < 0 || is_unplugged(self))
    *events = POLLERR;
  else if (ready >= (int64_t)plug->period_size)
    *events = is_playback ? POLLOUT : POLLIN;
  return 0;
}

static int on_close(snd_pcm_ioplug_t *plug) {
  room_pcm *self = plug->private_data;
  close(self->timer);
  munmap((void *)self->room, ROOM_BYTES);
  free(self->unplug_path);
  free(self);
  return 0;
}

static const snd_pcm_ioplug_callback_t callbacks = {
    .start = on_start,
    .stop = on_stop,
    .pointer = on_pointer,
    .transfer = on_transfer,
    .close = on_close,
    .prepare = on_prepare,
    .poll_revents = on_poll,
};

static int restrict_parameters(snd_pcm_ioplug_t *plug) {
  static const unsigned access[] = {SND_PCM_ACCESS_RW_INTERLEAVED};
  static const unsigned format[] = {SND_PCM_FORMAT_S16_LE};
  int error = snd_pcm_ioplug_set_param_list(plug, SND_PCM_IOPLUG_HW_ACCESS, 1, access);
  if (!error) error = snd_pcm_ioplug_set_param_list(plug, SND_PCM_IOPLUG_HW_FORMAT, 1, format);
  if (!error) error = snd_pcm_ioplug_set_param_minmax(plug, SND_PCM_IOPLUG_HW_CHANNELS, 1, 1);
  if (!error) error = snd_pcm_ioplug_set_param_minmax(plug, SND_PCM_IOPLUG_HW_RATE, RATE, RATE);
  if (!error)
    error = snd_pcm_ioplug_set_param_minmax(plug, SND_PCM_IOPLUG_HW_PERIOD_BYTES, 96, 19200);
  if (!error)
    error = snd_pcm_ioplug_set_param_minmax(plug, SND_PCM_IOPLUG_HW_BUFFER_BYTES, 192,
                                            MAX_BUFFER * 2);
  if (!error) error = snd_pcm_ioplug_set_param_minmax(plug, SND_PCM_IOPLUG_HW_PERIODS, 2, 100);
  return error;
}

static int enter_room(room_pcm *self, const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -errno;
  void *memory = MAP_FAILED;
  if (ftruncate(fd, ROOM_BYTES) == 0)
    memory = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int error = errno;
  close(fd);
  if (memory == MAP_FAILED) return -error;
  self->room = memory;
  return 0;
}

static const char *text_of(snd_config_t *config, const char *key) {
  snd_config_t *node;
  const char *text = NULL;
  if (snd_config_search(config, key, &node) == 0) snd_config_get_string(node, &text);
  return text;
}

SND_PCM_PLUGIN_DEFINE_FUNC(muster_room) {
  (void)root;
  const char *room = text_of(conf, "room");
  const char *unplug = text_of(conf, "unplug");
  if (!room) return -EINVAL;
  room_pcm *self = calloc(1, sizeof *self);
  if (!self) return -ENOMEM;
  self->unplug_path = unplug ? strdup(unplug) : NULL;
  int error = is_unplugged(self) ? -ENODEV : enter_room(self, room);
  if (error) {
    free(self->unplug_path);
    free(self);
    return error;
  }
  self->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  self->plug.version = SND_PCM_IOPLUG_VERSION;
  self->plug.name = "Muster's virtual room";
  self->plug.callback = &callbacks;
  self->plug.private_data = self;
  self->plug.poll_fd = self->timer;
  self->plug.poll_events = POLLIN;
  error = snd_pcm_ioplug_create(&self->plug, name, stream, mode);
  if (error < 0) {
    on_close(&self->plug);
    return error;
  }
  error = restrict_parameters(&self->plug);
  if (error < 0) {
    snd_pcm_ioplug_delete(&self->plug);
    return error;
  }
  *pcmp = self->plug.pcm;
  return 0;
}
SND_PCM_PLUGIN_SYMBOL(muster_room);
