// The output of `sluice-gateway luns`: every exported LUN with its properties and counters.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "nexus/exports.h"
#include "unit/statistics.h"

namespace sluice::admin {

struct LunView {
  std::string target;
  uint64_t lun = 0;
  std::string uuid;
  std::string product;
  uint64_t size_bytes = 0;
  uint32_t block_size = 512;
  bool read_only = false;
  bool write_cache = false;
  std::string state;  // "ready", "not-ready", "stuck", "stopped", "removed"
  bool reserved = false;
  size_t nexuses = 0;  // I_T nexuses on its target
  lun::UnitSnapshot figures;
};

std::vector<LunView> lun_views(const lun::Exports& exports);

std::string luns_json(const std::vector<LunView>& luns);
Result<std::string> luns_table(const std::string& json);

}  // namespace sluice::admin
