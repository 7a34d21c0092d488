// The results of an I_T nexus's third-party copies, for RECEIVE COPY RESULTS (SPC-5 §6.20) and
// RECEIVE ROD TOKEN INFORMATION (§6.25). They are deleted with the nexus.
//
// Threads: the nexus's reactor.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "scsi/receive_copy.h"
#include "scsi/rod_token.h"
#include "scsi/token_list.h"

namespace sluice::lun {

class Unit;

struct CopyRecord {
  const Unit* unit = nullptr;  // the copy manager; only compared, never dereferenced
  bool token_operation = false;
  uint32_t list_id = 0;
  bool running = true;
  scsi::CopyResult copy;           // EXTENDED COPY
  scsi::TokenOperation operation;  // POPULATE TOKEN, WRITE USING TOKEN
  scsi::RodTokenBytes token{};     // operation.token refers to it
};

class CopyRecords {
 public:
  // Creates the record of a copy that starts now. It replaces an older one of the same list id, or
  // the oldest finished one. nullptr with *in_use: a copy with that id is running; nullptr without
  // it: too many copies run.
  CopyRecord* start(const Unit& unit, bool token_operation, uint32_t list_id, bool* in_use);
  CopyRecord* find(const Unit& unit, bool token_operation, uint32_t list_id);
  void forget(const CopyRecord* record);

 private:
  std::vector<std::unique_ptr<CopyRecord>> records_;  // oldest first
};

}  // namespace sluice::lun
