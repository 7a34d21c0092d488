#include "echo/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "wire/tcp.h"

namespace sluice::bench {
namespace {

constexpr uint32_t kPlainBuffer = 256u << 10;

template <class Kind>
void tag(io_uring_sqe* sqe, Kind kind, uint32_t index) {
  io_uring_sqe_set_data64(sqe, uint64_t{index} << 8 | static_cast<uint8_t>(kind));
}

}  // namespace

void Server::submit_accept() {
  io_uring_sqe* sqe = ring_.sqe();
  io_uring_prep_accept(sqe, listener_, nullptr, nullptr, SOCK_CLOEXEC);
  tag(sqe, Kind::kAccept, 0);
}

void Server::submit_receive(uint32_t index) {
  Peer& peer = *peers_[index];
  io_uring_sqe* sqe = ring_.sqe();
  if (ring_.in_effect().receive == Receive::kPlain) {
    io_uring_prep_recv(sqe, peer.fd, peer.buffer.data(), peer.buffer.size(), 0);
  } else {
    io_uring_prep_recv_multishot(sqe, peer.fd, nullptr, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = 0;
  }
  tag(sqe, Kind::kReceive, index);
  peer.receiving = true;
}

void Server::submit_send(uint32_t index) {
  Peer& peer = *peers_[index];
  io_uring_sqe* sqe = ring_.sqe();
  // MSG_WAITALL: the kernel goes on with the rest itself when the socket buffer fills up.
  io_uring_prep_sendmsg(sqe, peer.fd, peer.connection.sending().message(),
                        MSG_WAITALL | MSG_NOSIGNAL);
  tag(sqe, Kind::kSend, index);
  peer.sending = true;
}

void Server::accepted(int fd) {
  submit_accept();
  if (fd < 0) return;
  for (uint32_t i = 0; i < kMaxConnections; ++i) {
    if (peers_[i]) continue;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    peers_[i] = std::make_unique<Peer>(stores_);
    peers_[i]->fd = fd;
    if (ring_.in_effect().receive == Receive::kPlain) peers_[i]->buffer.resize(kPlainBuffer);
    submit_receive(i);
    return;
  }
  close(fd);
}

void Server::received(uint32_t index, const io_uring_cqe& cqe) {
  Peer& peer = *peers_[index];
  const bool plain = ring_.in_effect().receive == Receive::kPlain;
  peer.receiving = !plain && (cqe.flags & IORING_CQE_F_MORE);
  if (cqe.res > 0) {
    const uint8_t* data = plain ? peer.buffer.data() : ring_.received(cqe);
    const bool sane = peer.closing || peer.connection.input(data, static_cast<uint32_t>(cqe.res));
    if (!plain) ring_.release(cqe);
    if (!sane) {
      peer.closing = true;
      shutdown(peer.fd, SHUT_RDWR);
    }
    if (!peer.dirty) {
      peer.dirty = true;
      dirty_.push_back(index);
    }
  } else if (cqe.res != -ENOBUFS && cqe.res != -EINTR) {
    peer.closing = true;
  }
  if (!peer.receiving && !peer.closing) submit_receive(index);
  close_when_idle(index);
}

void Server::sent(uint32_t index, int result) {
  Peer& peer = *peers_[index];
  peer.sending = false;
  if (result < 0) {
    peer.closing = true;
    shutdown(peer.fd, SHUT_RDWR);
  } else if (!peer.connection.sending().advance(static_cast<uint32_t>(result))) {
    submit_send(index);
    return;
  } else if (!peer.dirty) {
    peer.dirty = true;
    dirty_.push_back(index);
  }
  close_when_idle(index);
}

void Server::close_when_idle(uint32_t index) {
  Peer& peer = *peers_[index];
  if (!peer.closing || peer.sending || peer.receiving || peer.dirty) return;
  close(peer.fd);
  peers_[index].reset();
}

void Server::handle(const io_uring_cqe& cqe) {
  const auto index = static_cast<uint32_t>(cqe.user_data >> 8);
  switch (static_cast<Kind>(cqe.user_data & 0xff)) {
    case Kind::kAccept:
      return accepted(cqe.res);
    case Kind::kReceive:
      return received(index, cqe);
    case Kind::kSend:
      return sent(index, cqe.res);
  }
}

void Server::wait() {
  if (spin_us_ > 0) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(spin_us_);
    do {
      io_uring_submit_and_get_events(ring_.get());
      if (io_uring_cq_ready(ring_.get()) > 0) return;
    } while (std::chrono::steady_clock::now() < until);
  }
  const int n = io_uring_submit_and_wait(ring_.get(), 1);
  if (n < 0 && n != -EINTR) die(std::string("io_uring_enter: ") + std::strerror(-n));
}

void Server::run(const volatile int* stop) {
  dirty_.reserve(kMaxConnections);
  submit_accept();
  while (!*stop) {
    wait();
    io_uring_cqe* cqe = nullptr;
    unsigned head = 0;
    unsigned seen = 0;
    io_uring_for_each_cqe(ring_.get(), head, cqe) {
      handle(*cqe);
      ++seen;
    }
    io_uring_cq_advance(ring_.get(), seen);
    // Only now, when everything that arrived has been executed: one send per connection.
    for (const uint32_t index : dirty_) {
      Peer& peer = *peers_[index];
      peer.dirty = false;
      if (!peer.closing && !peer.sending && !peer.connection.filling().empty()) {
        peer.connection.swap_batches();
        peer.connection.filling().clear();
        submit_send(index);
      }
      close_when_idle(index);
    }
    dirty_.clear();
  }
  for (auto& peer : peers_) {
    if (peer) close(peer->fd);
  }
}

}  // namespace sluice::bench
