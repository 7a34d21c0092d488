// Desired objects for tests.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "control/desired.h"

namespace sluice::control {

inline constexpr const char* kVolumeUid = "5f0c7a3e-1111-4222-8333-444455556666";

inline wire::DesiredObject volume_object(const std::string& uid, const std::string& digest) {
  wire::DesiredObject object;
  object.set_id(uid);
  object.mutable_volume()->set_uid(uid);
  object.set_digest(digest);
  return object;
}

inline wire::DesiredObject host_object(const std::string& uid, const std::string& digest) {
  wire::DesiredObject object;
  object.set_id(uid);
  object.mutable_host()->set_uid(uid);
  object.set_digest(digest);
  return object;
}

inline wire::DesiredObject target_object(const std::string& iqn, const std::string& volume,
                                         const std::string& host, const std::string& digest) {
  wire::DesiredObject object;
  object.set_id(iqn);
  object.mutable_target()->set_iqn(iqn);
  object.mutable_target()->add_luns()->set_volume_uid(volume);
  object.mutable_target()->add_access()->set_host_uid(host);
  object.set_digest(digest);
  return object;
}

inline Objects objects_of(const std::vector<wire::DesiredObject>& list) {
  std::vector<ObjectPtr> put;
  for (const wire::DesiredObject& object : list) {
    put.push_back(std::make_shared<const wire::DesiredObject>(object));
  }
  Objects objects;
  objects.change({}, std::move(put));
  return objects;
}

inline wire::StreamUpdate full_update(uint64_t version,
                                      const std::vector<wire::DesiredObject>& list) {
  wire::StreamUpdate update;
  update.set_version(version);
  update.set_full(true);
  for (const wire::DesiredObject& object : list) *update.add_put() = object;
  update.set_digest(digest_of(objects_of(list)));
  return update;
}

// A directory that is removed at the end of the test.
class TestDirectory {
 public:
  TestDirectory() {
    std::string pattern = std::filesystem::temp_directory_path() / "control-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sluice::control
