// A reactor's own description of a SCSI generic device: commands go by write(2), answers come by
// read(2) once poll(2) says so. An answer is read where its command was written, so every reactor
// has one; the driver keeps SG_MAX_QUEUE (16) commands of each.
#pragma once

#include <scsi/sg.h>

#include <array>
#include <vector>

#include "backend/descriptor.h"
#include "passthrough/channel.h"
#include "passthrough/sg_answer.h"
#include "passthrough/sg_commands.h"

namespace sluice::passthrough {

// What the channels of one device share.
struct SgShared {
  int fd = -1;  // the description with the lock
  SgTraits traits;
  unsigned queue_depth = 16;  // commands that the device takes at once
  std::atomic<bool> write_cache = false;
  std::atomic<bool> write_same = true;  // not refused so far
  std::atomic<unsigned> channels = 0;
};

class SgChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(Aio& aio, SgShared& shared);
  ~SgChannel() override { shared_.channels.fetch_sub(1, std::memory_order_relaxed); }

 private:
  static constexpr unsigned kDepth = 16;  // SG_MAX_QUEUE of the kernel's driver
  // One in flight: what the kernel reads and writes until it has ended.
  struct Request {
    backend::Io* io = nullptr;
    SgStep step;
    std::array<uint8_t, 96> sense;
    std::vector<iovec> iov;
    Request* next = nullptr;
  };

  SgChannel(Aio& aio, SgShared& shared, backend::FileDescriptor fd);
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
  const backend::FileDescriptor fd_;
  std::vector<Request> requests_;
  Request* free_ = nullptr;
};

}  // namespace sluice::passthrough
