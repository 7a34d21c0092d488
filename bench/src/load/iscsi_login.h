// Logging in, and the few blocking exchanges around a run: capacity before it, logout after.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pdu/bhs.h"

namespace sluice::bench {

struct IscsiOffer {
  std::string initiator = "iqn.2026-11.dev.sluice:iscsi-load";
  std::string target;
  bool header_digest = false;
  bool data_digest = false;
  bool initial_r2t = false;
  bool immediate_data = true;
  uint32_t segment = 256u << 10;  // what we declare for ourselves
  uint32_t max_burst = 1u << 20;
  uint32_t first_burst = 1u << 20;
  uint32_t max_r2t = 8;
};

struct IscsiParameters {  // as agreed; defaults of RFC 7143 §13
  bool header_digest = false;
  bool data_digest = false;
  bool initial_r2t = true;
  bool immediate_data = true;
  uint32_t target_segment = 8192;
  uint32_t max_burst = 262144;
  uint32_t first_burst = 65536;
};

// Where a session stands when the measured path takes over.
struct IscsiState {
  IscsiParameters parameters;
  uint32_t cmd_sn = 1;  // of the next command
  uint32_t exp_stat_sn = 0;
  uint32_t max_cmd_sn = 1;
};

// One iSCSI connection outside of the measured path.
class IscsiLink {
 public:
  // Ends the program with the target's status when login fails.
  IscsiLink(int fd, const IscsiOffer& offer, uint32_t session);

  const IscsiParameters& parameters() const { return parameters_; }
  // Every key of the session and its value, as text: what was agreed; what each side declares of
  // itself bears the side's name before it.
  const std::map<std::string, std::string>& session() const { return session_; }
  IscsiState state() const {
    return {.parameters = parameters_,
            .cmd_sn = cmd_sn_,
            .exp_stat_sn = exp_stat_sn_,
            .max_cmd_sn = max_cmd_sn_};
  }

  struct Capacity {
    uint64_t blocks = 0;
    uint32_t block_size = 0;
  };
  // Clears unit attentions, then READ CAPACITY(16).
  Capacity capacity(uint64_t lun);
  // The session's numbers after a run, then a Logout.
  void logout(uint32_t cmd_sn, uint32_t exp_stat_sn);

 private:
  struct Answer {
    pdu::Bhs header;
    std::vector<uint8_t> data;
  };
  struct Outcome {
    uint8_t status = 0;
    std::vector<uint8_t> data;
  };

  void login_stage(uint32_t session, uint8_t current, uint8_t next, const std::string& text);
  void offer(const std::string& text);
  void learn(const std::string& text);
  void send(const pdu::Bhs& header, const std::string& data);
  bool receive(Answer* answer);
  Outcome command(uint64_t lun, const uint8_t (&cdb)[16], uint32_t expected);

  int fd_;
  IscsiParameters parameters_;
  std::map<std::string, std::string> session_;
  bool header_digest_on_ = false;  // digests start with the full feature phase
  bool data_digest_on_ = false;
  uint32_t cmd_sn_ = 1;
  uint32_t exp_stat_sn_ = 0;
  uint32_t max_cmd_sn_ = 1;
};

}  // namespace sluice::bench
