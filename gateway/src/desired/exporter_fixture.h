// An exporter with its exports, for tests. It records what happens in order.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "desired/exporter.h"
#include "desired/units_fixture.h"
#include "nexus/host_directory.h"
#include "unit/test_reactors.h"

namespace sluice::desired {

struct TestExports {
  lun::TestReactors reactors{1};
  lun::Exports exports;
  TestUnits units;
  std::vector<std::string> reviewed;
  // Called at each review, after it was recorded.
  std::function<void(const std::string& iqn)> at_review = [](const std::string&) {};
  Exporter exporter{{.exports = exports,
                     .reactors = reactors,
                     .units = units,
                     .review = [this](const std::string& iqn) {
                       reviewed.push_back(iqn);
                       at_review(iqn);
                     }}};

  // "0:vol 5:other(ro)"; "absent": no such target.
  std::string luns(const std::string& iqn) const {
    const auto target = exports.find(iqn);
    if (target == nullptr) return "absent";
    std::string text;
    for (const auto& entry : target->luns()) {
      text += (text.empty() ? "" : " ") + std::to_string(entry.lun) + ":" +
              entry.unit->identity().serial + (entry.read_only ? "(ro)" : "");
    }
    return text;
  }
  bool admits(const std::string& iqn, const std::string& initiator) const {
    lun::HostAccess access;
    const auto target = exports.find(iqn);
    return target != nullptr && target->access_for(initiator, &access);
  }
};

}  // namespace sluice::desired
