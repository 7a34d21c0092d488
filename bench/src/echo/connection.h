// One client's bytes in, one batch of answers out. Knows no sockets: the server feeds it what was
// received and sends the batch it fills.
#pragma once

#include <array>
#include <cstdint>

#include "echo/batch.h"
#include "echo/store.h"
#include "wire/bare.h"

namespace sluice::bench {

class Connection {
 public:
  explicit Connection(const Stores& stores) : stores_(stores) {}

  // Parses and executes everything complete in `data`. False: the peer broke the protocol.
  bool input(const uint8_t* data, uint32_t size);

  Batch& filling() { return batches_[filling_]; }
  Batch& sending() { return batches_[1 - filling_]; }
  void swap_batches() { filling_ = 1 - filling_; }

 private:
  uint32_t collect(const uint8_t* data, uint32_t size, uint32_t need);
  bool execute();
  bool begin_write();
  void take_payload(const uint8_t* data, uint32_t size);
  bool finish_write();
  bool answer(bare::Status status, const uint8_t* payload, uint32_t size);

  enum class State : uint8_t { kHeader, kPayload, kPayloadDigest };

  const Stores& stores_;
  std::array<Batch, 2> batches_;
  int filling_ = 0;
  State state_ = State::kHeader;
  bool greeted_ = false;
  DigestChoice digests_;
  bare::Store store_ = bare::Store::kNull;
  bare::Status write_status_ = bare::Status::kGood;
  bare::Header request_;
  std::array<uint8_t, bare::kHeaderSize + kDigestSize> partial_{};
  uint32_t partial_size_ = 0;
  uint32_t payload_left_ = 0;
  uint64_t write_at_ = 0;
  uint32_t payload_digest_ = kDigestStart;
};

}  // namespace sluice::bench
