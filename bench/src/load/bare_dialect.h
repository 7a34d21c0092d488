#pragma once

#include "load/dialect.h"
#include "wire/bare.h"

namespace sluice::bench {

class BareDialect : public Dialect {
 public:
  // Greets the peer on a fresh connection; blocking. Ends the program when refused.
  BareDialect(int fd, bare::Store store, bool digests);

  bool issue(const Command& command, TxQueue& tx) override;
  uint32_t header_size() const override { return bare::kHeaderSize + (digests_ ? kDigestSize : 0); }
  const char* parse(const uint8_t* header, Incoming* in, TxQueue& tx) override;
  TxQueue::Digests digests() const override {
    return {.header = digests_, .data = digests_, .constant_payload = false};
  }
  void finish(int) override {}

 private:
  bool digests_;
};

}  // namespace sluice::bench
