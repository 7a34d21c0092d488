#include "net/listeners.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log_repeats.h"
#include "net/completion_tag.h"

namespace sluice::net {

void Listeners::listen(int fd, std::function<void(int)> accepted) {
  all_.push_back(std::make_unique<Listener>(Listener{fd, std::move(accepted)}));
  arm(*all_.back());
}

void Listeners::arm(Listener& listener) {
  assert(listener.state == Listener::State::kIdle);
  io_uring_sqe* e = submissions_.sqe();
  io_uring_prep_multishot_accept(e, listener.fd, nullptr, nullptr, SOCK_CLOEXEC);
  tag(e, &listener, CompletionKind::kAccept);
  listener.state = Listener::State::kArmed;
}

void Listeners::on_accept(void* owner, int result, uint32_t flags) {
  Listener& listener = *static_cast<Listener*>(owner);
  const bool more = (flags & IORING_CQE_F_MORE) != 0;
  if (listener.state == Listener::State::kClosed) {
    if (result >= 0) ::close(result);
    if (!more) std::erase_if(all_, [&](const auto& l) { return l.get() == &listener; });
    return;
  }
  if (!more) listener.state = Listener::State::kIdle;
  if (result >= 0) {
    listener.accepted(result);
    if (listener.state == Listener::State::kIdle && !ended_) arm(listener);
  } else if (result != -ECANCELED && result != -EBADF && result != -EINVAL) {
    // Mostly "no descriptors left": the next tick tries again instead of spinning.
    log::repeated(log::Level::kWarning, std::strerror(-result), "accept failed",
                  {{"error", std::strerror(-result)}});
  }
}

void Listeners::tick() {
  for (const auto& listener : all_) {
    if (listener->state == Listener::State::kIdle && !ended_) arm(*listener);
  }
}

void Listeners::stop(int fd) {
  for (const auto& listener : all_) {
    if (listener->fd == fd && listener->state != Listener::State::kClosed) close(*listener);
  }
}

void Listeners::stop_all() {
  for (const auto& listener : all_) {
    if (listener->state != Listener::State::kClosed) close(*listener);
  }
}

void Listeners::close(Listener& listener) {
  ::shutdown(listener.fd, SHUT_RDWR);  // ends the multishot accept
  ::close(listener.fd);
  listener.state = Listener::State::kClosed;
}

}  // namespace sluice::net
