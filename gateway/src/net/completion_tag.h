// What a completion of a reactor's ring belongs to: a kind and an owner, in one word of user data.
#pragma once

#include <liburing.h>

#include <cstdint>

namespace sluice::net {

// The object that a kind's owner points to.
enum class CompletionKind : uint8_t {
  kAio,      // AioOp
  kReceive,  // TcpConnection
  kSend,     // TcpConnection; also its connect
  kAccept,   // Listeners::Listener
  kWake,     // none
  kTick,     // none
  kIgnore,   // none
  kTimer,    // AioQueue::Timer
};

// `owner` is aligned to eight bytes, or null.
inline void tag(io_uring_sqe* sqe, void* owner, CompletionKind kind) {
  sqe->user_data = reinterpret_cast<uintptr_t>(owner) | static_cast<uintptr_t>(kind);
}
inline CompletionKind kind_of(uint64_t user_data) {
  return static_cast<CompletionKind>(user_data & 7);
}
inline void* owner_of(uint64_t user_data) {
  return reinterpret_cast<void*>(user_data & ~uint64_t{7});  // NOLINT
}

}  // namespace sluice::net
