// A reactor's own file description of a SCSI generic device. write(2) sends commands, poll(2)
// reports answers, read(2) receives them. An answer arrives on the description that sent the
// command, so every reactor has its own. The driver permits SG_MAX_QUEUE (16) commands for each.
#pragma once

#include <scsi/sg.h>

#include <array>
#include <vector>

#include "base/file_descriptor.h"
#include "passthrough/channel.h"
#include "passthrough/sg_answer.h"
#include "passthrough/sg_commands.h"

namespace sluice::passthrough {

// Shared by the channels of one device.
struct SgShared {
  int fd = -1;  // the description with the lock
  SgTraits traits;
  unsigned queue_depth = 16;  // commands that the device accepts at once
  std::atomic<bool> write_cache = false;
  std::atomic<bool> write_same = true;  // false after a refusal
  std::atomic<unsigned> channels = 0;
};

class SgChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(Aio& aio, SgShared& shared);
  ~SgChannel() override { shared_.channels.fetch_sub(1, std::memory_order_relaxed); }

 private:
  static constexpr unsigned kDepth = 16;  // SG_MAX_QUEUE of the kernel's driver
  // A command in flight: the memory that the kernel uses until the command has ended.
  struct Request {
    backend::Io* io = nullptr;
    SgStep step;
    std::array<uint8_t, 96> sense;
    std::vector<iovec> iov;
    Request* next = nullptr;
  };

  SgChannel(Aio& aio, SgShared& shared, FileDescriptor fd);
  Sent send(backend::Io& io) override;
  Collected collect() override;
  int poll_fd() const override { return fd_.get(); }
  unsigned limit() const override;
  void describe_data(Request& request, sg_io_hdr& header) const;
  void give_back(Request& request);
  Sent not_sent(Request& request, int error);
  bool settle(Request& request, const sg_io_hdr& header);
  bool failed(Request& request, const SgOutcome& outcome, const sg_io_hdr& header);
  bool must_be_durable(const backend::Io& io) const;

  SgShared& shared_;
  const FileDescriptor fd_;
  std::vector<Request> requests_;
  Request* free_ = nullptr;
};

}  // namespace sluice::passthrough
