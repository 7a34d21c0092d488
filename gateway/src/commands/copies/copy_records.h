// What an I_T nexus may still ask about its third-party copies: RECEIVE COPY RESULTS (SPC-5
// §6.20) and RECEIVE ROD TOKEN INFORMATION (§6.25). Gone with the nexus.
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
  const Unit* unit = nullptr;  // the copy manager; compared, never followed
  bool token_operation = false;
  uint32_t list_id = 0;
  bool running = true;
  scsi::CopyResult copy;           // EXTENDED COPY
  scsi::TokenOperation operation;  // POPULATE TOKEN, WRITE USING TOKEN
  scsi::RodTokenBytes token{};     // what operation.token points to
};

class CopyRecords {
 public:
  // The record of a copy that starts now, in place of an older one of the same list id or of the
  // oldest finished one. *in_use: a copy of that id is running;
  // nullptr without that: too many are.
  CopyRecord* start(const Unit& unit, bool token_operation, uint32_t list_id, bool* in_use);
  CopyRecord* find(const Unit& unit, bool token_operation, uint32_t list_id);
  void forget(const CopyRecord* record);

 private:
  std::vector<std::unique_ptr<CopyRecord>> records_;  // oldest first
};

}  // namespace sluice::lun
