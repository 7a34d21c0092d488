// Messages waiting to be sent on one connection; all that fit go out in one gathered send.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <vector>

#include "pdu/bhs.h"
#include "wire/digest.h"

namespace sluice::bench {

class TxQueue {
 public:
  struct Digests {
    bool header = false;
    bool data = false;
    // Payload memory never changes, so that each (address, size) needs its CRC only once.
    bool constant_payload = false;
  };

  void set_digests(const Digests& digests) { digests_ = digests; }
  // `data` must stay unchanged until sent.
  void add(const pdu::Bhs& header, const uint8_t* data, uint32_t size);
  // Goes before all that is not partly sent, but after what came by add_next() earlier: the answer
  // to a ping, which must not wait for data.
  void add_next(const pdu::Bhs& header);
  bool empty() const { return first_ == messages_.size(); }
  // Sends what the socket takes now. False when the connection is gone.
  bool flush(int fd);

 private:
  struct Message {
    std::array<uint8_t, pdu::kBhsSize + kDigestSize> head;
    std::array<uint8_t, 3 + kDigestSize> tail;  // padding, digest
    uint8_t head_size;
    uint8_t tail_size;
    uint32_t data_size;
    const uint8_t* data;

    uint32_t size() const { return head_size + data_size + tail_size; }
  };
  struct Known {
    const uint8_t* data;
    uint32_t size;
    uint32_t state;
  };
  static constexpr uint32_t kMaxMessages = 256;  // per send; three parts each stay under IOV_MAX

  uint32_t data_digest(const uint8_t* data, uint32_t size);
  void fill(Message& m, const pdu::Bhs& header, const uint8_t* data, uint32_t size);
  uint32_t gather();
  void drop(uint64_t sent);

  Digests digests_;
  std::vector<Message> messages_;
  size_t first_ = 0;
  size_t urgent_end_ = 0;  // behind the last that came by add_next()
  uint32_t first_sent_ = 0;
  std::vector<Known> known_;
  std::array<iovec, size_t{kMaxMessages} * 3> parts_;
};

}  // namespace sluice::bench
