// Reads one mapping of a YAML file according to its key table. Unknown, repeated, missing and
// malformed keys become messages with file, line, key, found and permitted value. Reading continues
// after an error, so that one run reports all of them.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "config/keys.h"

namespace sluice::config {

// The errors of one file; at most limits::kMaxConfigErrors are kept.
class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {}

  // "FILE:LINE: KEY: MESSAGE"; line 0 and an empty key are omitted.
  void add(int line, std::string_view key, std::string_view message);
  bool none() const { return count_ == 0; }
  size_t count() const { return count_; }
  std::string text() const;  // one per line
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::vector<std::string> messages_;
  size_t count_ = 0;
};

class Section {
 public:
  // `schema` names the key table; `path` is for messages: "targets[0].luns[2]".
  Section(Faults& faults, std::string_view schema, std::string path, const YAML::Node& node);

  int line() const { return line_of(node_); }
  int line(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).IsDefined(); }

  // Each leaves `out` unchanged if the key is absent or invalid.
  void number(std::string_view key, uint64_t* out) const;
  void size(std::string_view key, uint64_t* out) const;
  void duration(std::string_view key, Nanos* out) const;
  void on_off(std::string_view key, bool* out) const;
  void choice(std::string_view key, std::string* out) const;
  void text(std::string_view key, std::string* out) const;
  void texts(std::string_view key, std::vector<std::string>* out) const;
  void numbers(std::string_view key, std::vector<unsigned>* out) const;
  template <class T>
  void number_as(std::string_view key, T* out) const {
    uint64_t value = *out;
    number(key, &value);
    *out = static_cast<T>(value);  // the table's bounds fit the type
  }

  // A subsection, empty if absent; its keys are those of `schema`.
  Section section(std::string_view key, std::string_view schema) const;
  std::vector<Section> list(std::string_view key, std::string_view schema) const;

  // Reports an error in the key's value that the caller found.
  void fault(std::string_view key, std::string_view message) const;
  Faults& faults() const { return *faults_; }

 private:
  static int line_of(const YAML::Node& node);
  void check_keys() const;
  std::string full(std::string_view key) const;
  YAML::Node find(std::string_view key) const;
  // The scalar text of a key. False: absent, or not a scalar (reported).
  bool scalar(std::string_view key, std::string* out) const;
  bool sequence(std::string_view key, YAML::Node* out) const;
  void out_of_bounds(std::string_view key, std::string_view got) const;

  Faults* faults_;
  std::string schema_;
  std::string path_;
  YAML::Node node_;
};

}  // namespace sluice::config
