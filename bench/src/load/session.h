// One connection under load: keeps `depth` commands in flight and accounts for each.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load/dialect.h"
#include "load/histogram.h"
#include "load/pattern.h"
#include "load/workload.h"

namespace sluice::bench {

uint64_t now_ns();

struct Tally {
  Histogram latency;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t attentions = 0;  // unit attentions; the command was sent again
  uint64_t receives = 0;    // calls that returned data; commands per receive is the batch size
  uint64_t errors = 0;
  uint64_t mismatches = 0;
  std::string first_error;
};

class Session {
 public:
  // Payload of writes without verification is `shared`, of at least workload.size bytes.
  Session(int fd, std::unique_ptr<Dialect> dialect, const Workload& workload, uint32_t index,
          const uint8_t* shared);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start(Phase phase);  // fills the queue; the session is idle before
  void stop();
  bool idle() const { return free_.size() == slots_.size() && tx_.empty(); }
  bool failed() const { return failed_; }
  int fd() const { return fd_; }
  // Whether the socket still has to take bytes.
  bool blocked() const { return !tx_.empty(); }

  // One receive, everything it brings, and one send. True if anything was received.
  bool pump();
  void finish() { dialect_->finish(fd_); }

  Tally& tally() { return tally_; }
  void reset_tally() { tally_ = {}; }

 private:
  struct Slot {
    Command command;
    uint64_t issued_ns = 0;
    uint32_t got = 0;
    std::vector<uint8_t> buffer;  // writes with verification
  };

  void issue_free(uint64_t now);
  bool prepare(Slot& slot);
  bool parse(const uint8_t* data, uint32_t size, uint32_t* used);
  uint32_t take_body(const uint8_t* data, uint32_t size);
  void check_payload(const uint8_t* data, uint32_t size);
  void check_digest(const uint8_t* data, uint32_t size);
  bool end_message();
  void complete(Slot& slot, uint8_t status);
  void store_sense(const uint8_t* data, uint32_t size);
  bool unit_attention(uint8_t status) const;
  void fail(const std::string& why);
  void count_error(const std::string& why);

  int fd_;
  std::unique_ptr<Dialect> dialect_;
  const Workload& workload_;
  Script script_;
  Pattern pattern_;
  const uint8_t* shared_;
  TxQueue tx_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> again_;  // slots whose command is to be sent again
  bool held_ = false;            // the target's window is closed for the command of held_slot_
  uint32_t held_slot_ = 0;
  std::vector<uint8_t> buffer_;
  uint32_t buffered_ = 0;
  Incoming in_;
  uint32_t body_left_ = 0;  // payload, padding and digest of the current message still to come
  uint32_t body_done_ = 0;
  uint32_t digest_state_ = kDigestStart;
  // Of a status' data: the length of its sense data, and that data's beginning (RFC 7143 §11.4.7).
  std::array<uint8_t, 5> sense_ = {};
  uint32_t attentions_ = 0;
  uint8_t digest_wire_[kDigestSize] = {};
  uint64_t now_ = 0;
  bool issuing_ = false;
  bool failed_ = false;
  Tally tally_;
};

}  // namespace sluice::bench
