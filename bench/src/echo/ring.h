// The io_uring of the bare program and its provided buffers.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

enum class Receive : uint8_t { kIncremental, kProvided, kPlain };

// liburing 2.3 predates incremental consumption (kernel 6.12); the numbers are kernel ABI. The
// flags field of io_uring_buf_reg is called `pad` in its header.
inline constexpr uint16_t kPbufRingInc = 2;       // IOU_PBUF_RING_INC
inline constexpr uint32_t kCqeBufMore = 1u << 4;  // IORING_CQE_F_BUF_MORE

struct RingOptions {
  Receive receive = Receive::kIncremental;
  bool defer_taskrun = true;
  uint32_t buffers = 8;
  uint32_t buffer_size = 64u << 10;
};

class Ring {
 public:
  explicit Ring(const RingOptions& options);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  io_uring* get() { return &ring_; }
  io_uring_sqe* sqe();
  const RingOptions& in_effect() const { return options_; }
  const std::string& setup() const { return setup_; }

  // The bytes a completion received into a provided buffer, and its return once they are used.
  const uint8_t* received(const io_uring_cqe& cqe) const;
  void release(const io_uring_cqe& cqe);

 private:
  void set_up_ring();
  void set_up_buffers();
  bool register_buffers(uint16_t flags);
  uint8_t* buffer(uint16_t id) const { return memory_ + size_t{id} * options_.buffer_size; }

  RingOptions options_;
  std::string setup_;
  io_uring ring_{};
  io_uring_buf_ring* buffer_ring_ = nullptr;
  uint8_t* memory_ = nullptr;
  std::vector<uint32_t> consumed_;  // per buffer, incremental mode only
};

const char* name_of(Receive receive);

}  // namespace sluice::bench
