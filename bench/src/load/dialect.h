// What a session needs from a protocol: how a command is put on the wire and what an answer means.
#pragma once

#include <cstdint>

#include "load/tx_queue.h"

namespace sluice::bench {

struct Command {
  uint32_t slot = 0;
  bool write = false;
  uint64_t offset = 0;  // bytes
  uint32_t size = 0;
  const uint8_t* data = nullptr;  // writes: `size` bytes, unchanged until answered
};

struct Incoming {
  static constexpr uint32_t kNoSlot = ~uint32_t{0};
  uint32_t data = 0;         // payload bytes that follow the header
  uint32_t padding = 0;      // then these
  bool data_digest = false;  // then the digest
  uint32_t slot = kNoSlot;   // the command this belongs to
  uint32_t offset = 0;       // place of the payload within the command's data
  bool payload = false;      // the payload is the command's data (and not, say, sense data)
  bool done = false;         // the command ends with this
  uint8_t status = 0;
};

class Dialect {
 public:
  Dialect() = default;
  virtual ~Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;

  // False: the target's window is closed, try again after the next answer.
  virtual bool issue(const Command& command, TxQueue& tx) = 0;
  virtual uint32_t header_size() const = 0;
  // Reads one header of header_size() bytes; may queue answers of its own. Null, or what is wrong.
  virtual const char* parse(const uint8_t* header, Incoming* in, TxQueue& tx) = 0;
  virtual TxQueue::Digests digests() const = 0;
  // Says good-bye on an idle connection; blocking.
  virtual void finish(int fd) = 0;
};

}  // namespace sluice::bench
