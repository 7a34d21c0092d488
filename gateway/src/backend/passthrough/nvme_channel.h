// A reactor's second ring, with 128-byte entries, for commands to a namespace
// (IORING_OP_URING_CMD). The reactor's own ring polls its eventfd.
#pragma once

#include <liburing.h>

#include <vector>

#include "base/file_descriptor.h"
#include "passthrough/channel.h"
#include "passthrough/nvme_commands.h"

namespace sluice::passthrough {

// Shared by the channels of one namespace.
struct NvmeShared {
  int fd = -1;
  NvmeTraits traits;
  std::atomic<bool> write_cache = false;
};

class NvmeChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(Aio& aio, const NvmeShared& shared);
  ~NvmeChannel() override;

 private:
  static constexpr unsigned kDepth = 128;  // commands in flight
  // A command in flight: the memory that the kernel reads until the command has ended.
  struct Request {
    backend::Io* io = nullptr;
    uint64_t bytes = 0;
    NvmeRange range;
    std::vector<iovec> iov;  // of a request that had to be split
    Request* next = nullptr;
  };

  NvmeChannel(Aio& aio, const NvmeShared& shared);
  Result<void> set_up();
  Sent send(backend::Io& io) override;
  Collected collect() override;
  int poll_fd() const override { return event_.get(); }
  unsigned limit() const override { return kDepth; }
  void describe_data(Request& request, const NvmeStep& step, io_uring_sqe& sqe) const;
  bool settle(backend::Io& io, uint64_t bytes, int32_t result) const;
  bool must_be_durable(const backend::Io& io) const;
  void hand_over();

  const NvmeShared& shared_;
  io_uring ring_{};
  bool ring_open_ = false;
  FileDescriptor event_;
  std::vector<Request> requests_;
  Request* free_ = nullptr;
};

}  // namespace sluice::passthrough
