#pragma once

#include <memory>
#include <vector>

#include "load/dialect.h"
#include "load/iscsi_login.h"

namespace sluice::bench {

class IscsiDialect : public Dialect {
 public:
  // `link` logs out at the end; null: there is no logout. `luns` are in their 8-byte form, at least
  // one. A command's slot selects its LUN.
  IscsiDialect(const IscsiState& state, std::unique_ptr<IscsiLink> link, std::vector<uint64_t> luns,
               uint32_t block_size, uint32_t slots, bool constant_payload);

  bool issue(const Command& command, TxQueue& tx) override;
  uint32_t header_size() const override {
    return pdu::kBhsSize + (parameters_.header_digest ? kDigestSize : 0);
  }
  const char* parse(const uint8_t* header, Incoming* in, TxQueue& tx) override;
  TxQueue::Digests digests() const override;
  void finish(int fd) override;

 private:
  struct Burst {
    uint32_t slot = 0;
    uint32_t transfer_tag = pdu::kReservedTag;
    uint32_t from = 0;
    uint32_t size = 0;
  };

  uint64_t lun_of(uint32_t slot) const { return luns_[slot % luns_.size()]; }
  void send_data(const Burst& burst, TxQueue& tx);
  const char* parse_data_in(const pdu::Bhs& h, Incoming* in);
  const char* parse_r2t(const pdu::Bhs& h, TxQueue& tx);
  void answer_ping(const pdu::Bhs& h, TxQueue& tx);
  void see_status(const pdu::Bhs& h);

  std::unique_ptr<IscsiLink> link_;
  IscsiParameters parameters_;
  std::vector<uint64_t> luns_;
  uint32_t block_shift_;
  bool constant_payload_;
  std::vector<Command> commands_;  // by slot
  uint32_t cmd_sn_;
  uint32_t exp_stat_sn_;
  uint32_t max_cmd_sn_;
};

}  // namespace sluice::bench
