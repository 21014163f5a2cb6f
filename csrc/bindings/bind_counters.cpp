#include "bindings/bindings.h"
#include "bindings/by_reference.h"
#include "core/counters.h"
#include "core/range.h"
#include "kernels/common/ladder.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

struct Range {
  std::string name;
  std::vector<int64_t> entered;  // and not left yet: ranges of any thread

  void enter() { entered.push_back(push_range(name)); }
  void exit(const py::args& error) {
    const auto own = std::find_if(entered.rbegin(), entered.rend(), &is_open);
    RL_CHECK(own != entered.rend(), "range", "\"", name, "\" is not open in this thread");
    const bool fails = !error.empty() && !error[0].is_none();  // then that exception is the one to show
    const std::string inside = pop_range(*own, fails);
    entered.erase(std::next(own).base());
    RL_CHECK(inside.empty() || fails, "range", "\"", name, "\" was left while \"", inside,
             "\", which was entered inside it, was still open; both are closed");
  }
};

py::int_ as_int(Count count) {
  const py::int_ high(static_cast<int64_t>(count >> 64)), low(static_cast<uint64_t>(count));
  return py::int_((high << py::int_(64)) | low);
}

constexpr std::pair<const char*, Count Counts::*> kCounts[] = {{"ops", &Counts::ops},
                                                               {"launches", &Counts::launches},
                                                               {"host_calls", &Counts::host_calls},
                                                               {"macs", &Counts::macs},
                                                               {"flops", &Counts::flops},
                                                               {"bytes_read", &Counts::bytes_read},
                                                               {"bytes_written", &Counts::bytes_written},
                                                               {"allocations", &Counts::allocations},
                                                               {"bytes_allocated", &Counts::bytes_allocated}};

std::string describe(const Counts& counts) {
  std::string text;
  for (const auto& [name, field] : kCounts)
    text += message(text.empty() ? "Counts(" : ", ", name, "=", std::string(py::str(as_int(counts.*field))));
  return text + ")";
}

Count bytes_of(const Cost& cost) { return Count{cost.bytes_read} + cost.bytes_written; }

int64_t fitting(bool overflows, int64_t value) {
  RL_CHECK(!overflows, "Cost", "expected counts below 2^63, got more");
  return value;
}

Cost sum_of(const Cost& a, const Cost& b) {
  const auto plus = [](int64_t x, int64_t y) {
    int64_t sum = 0;
    const bool overflows = __builtin_add_overflow(x, y, &sum);
    return fitting(overflows, sum);
  };
  return {plus(a.macs, b.macs), plus(a.flops, b.flops), plus(a.bytes_read, b.bytes_read),
          plus(a.bytes_written, b.bytes_written)};
}

Cost times(const Cost& c, int64_t n) {
  RL_CHECK(n >= 0, "Cost", "expected a factor of 0 or more, got ", n);
  const auto by_n = [n](int64_t x) {
    int64_t product = 0;
    const bool overflows = __builtin_mul_overflow(x, n, &product);
    return fitting(overflows, product);
  };
  return {by_n(c.macs), by_n(c.flops), by_n(c.bytes_read), by_n(c.bytes_written)};
}

// The same nine read-only properties on Counts and on Counter.
template <class Class, class Get>
void add_counts(Class& cls, Get get) {
  using Self = typename Class::type;
  for (const auto& [name, field] : kCounts)
    cls.def_property_readonly(name, [get, field = field](const Self& self) { return as_int(get(self).*field); });
}

constexpr const char* kVariantsDoc = R"doc(The kernels of an op: its ladder, fastest first, v0 (the reference) last.

Parameters
----------
op : str
    One of rl.ops().
device : str, optional
    "cpu" or "cuda": only the kernels there.

Returns
-------
list of Variant
    Each with `name`, `idea` (one line), `device` and `kernel`. Call the op with variant=name to run it.

Raises
------
ValueError
    For an op without a ladder; it lists those that have one.

Examples
--------
>>> rl.variants("gelu", "cpu")[-1].name
'v0_reference')doc";

}  // namespace

void register_counters(py::module_& m) {
  py::class_<Cost>(m, "Cost",
                   R"doc(What one op has to do.

Costs can be added, multiplied by a number and compared.

Attributes
----------
macs, flops : int
    Multiply-accumulates, and all floating-point operations, 2 for each MAC.
bytes_read, bytes_written, bytes : int
    Compulsory bytes: each distinct piece of memory once; `bytes` is the sum.

Examples
--------
>>> cost = rl.Cost(macs=4, flops=8, bytes_read=32, bytes_written=16)
>>> cost.bytes, (2 * cost).flops
(48, 16))doc")
      .def(py::init([](int64_t macs, int64_t flops, int64_t bytes_read, int64_t bytes_written) {
             for (const int64_t count : {macs, flops, bytes_read, bytes_written})
               RL_CHECK(count >= 0, "Cost", "expected counts of 0 or more, got ", count);
             return Cost{macs, flops, bytes_read, bytes_written};
           }),
           py::kw_only(), py::arg("macs") = 0, py::arg("flops") = 0, py::arg("bytes_read") = 0,
           py::arg("bytes_written") = 0)
      .def_readonly("macs", &Cost::macs)
      .def_readonly("flops", &Cost::flops)
      .def_readonly("bytes_read", &Cost::bytes_read)
      .def_readonly("bytes_written", &Cost::bytes_written)
      .def_property_readonly("bytes", [](const Cost& c) { return as_int(bytes_of(c)); })
      .def_property_readonly(
          "arithmetic_intensity",
          [](const Cost& c) {
            const Count bytes = bytes_of(c);
            return bytes ? static_cast<double>(c.flops) / static_cast<double>(bytes) : 0.0;
          },
          "FLOPs per byte.")
      .def("__add__", &sum_of, py::is_operator())
      .def("__mul__", &times, py::is_operator())
      .def("__rmul__", &times, py::is_operator())
      .def(
          "__eq__",
          [](const Cost& a, const Cost& b) {
            return a.macs == b.macs && a.flops == b.flops && a.bytes_read == b.bytes_read &&
                   a.bytes_written == b.bytes_written;
          },
          py::is_operator())
      .def("__repr__", [](const Cost& c) {
        return message("Cost(macs=", c.macs, ", flops=", c.flops, ", bytes_read=", c.bytes_read,
                       ", bytes_written=", c.bytes_written, ")");
      });

  py::class_<Counts> counts(m, "Counts", R"doc(Exact counts of launches, work, bytes and allocations.

Attributes
----------
ops : int
    Calls of ops, the same on every device.
launches, host_calls : int
    Kernels that ran, and submissions to the driver: a replay of a graph is one.
macs, flops : int
    Arithmetic that the ops declare; a MAC is 2 FLOPs.
bytes_read, bytes_written : int
    Compulsory bytes that the ops declare.
allocations, bytes_allocated : int
    Memory given to tensors, scratch and workspaces.

Examples
--------
>>> with rl.count() as c:
...     y = rl.exp(rl.ones(10, 10))
>>> c.by_op["exp"].launches, c.by_op["exp"].flops
(1, 100))doc");
  add_counts(counts, [](const Counts& self) { return self; });
  counts.def("__repr__", &describe);

  py::class_<Counter> counter(m, "count", R"doc(Counts what the runtime does inside `with rl.count() as c:`.

It has the figures of `rl.Counts` in total, and can be read inside of the block too. It counts what all threads of the
process do. Another `rl.count()` may count inside of the block, and one that has ended may begin again from 0.

Attributes
----------
by_op, by_range : dict of str to Counts
    The same for each op, and for each range that `rl.range` opened.

Raises
------
RuntimeError
    On entry, while it counts already: in the same thread or another one.
ValueError
    On entry inside a function that `rl.compile` records, which runs nothing; `rl.compile` then calls it as it is written.

Examples
--------
>>> a = rl.ones(512, 512)
>>> with rl.count() as c:
...     b = a @ a
>>> c.launches, c.macs, c.bytes_read + c.bytes_written
(1, 134217728, 2097152))doc");
  add_counts(counter, [](const Counter& self) { return self.results().total; });
  counter.def(py::init<>())
      .def_property_readonly(
          "peak_bytes", [](const Counter& self) { return self.results().peak_bytes; },
          "Highest memory in tensors above what was held on entry.")
      .def_property_readonly("by_op", [](const Counter& self) { return self.results().by_op; })
      .def_property_readonly(
          "by_range", [](const Counter& self) { return self.results().by_range; },
          "Keys are paths: 'mlp' and 'mlp/gate'; a path includes its inner ranges. What a graph replays has the range "
          "of "
          "its capture, inside of the one that is open.")
      .def(
          "__enter__",
          [](Counter& self) -> Counter& {
            Trace::refuse("count",
                          "a recorded function is not run, so nothing would be counted; count around its call");
            self.start();
            return self;
          },
          py::return_value_policy::reference)
      .def("__exit__", [](Counter& self, const py::args&) { self.stop(); });  // its text is that of a result

  py::class_<PrivateCounter>(m, "_PrivateCount",
                             "Counts this thread's calls on tensors without memory inside of a with-block, and nobody "
                             "else does; `rooflab.cost` is built on it. With `is_seen=True` others count them as well.")
      .def(py::init<bool>(), py::kw_only(), py::arg("is_seen") = false)
      .def_property_readonly("total", [](const PrivateCounter& self) { return self.total(); })
      .def_property_readonly("by_op", [](const PrivateCounter& self) { return self.by_op(); })
      .def(
          "__enter__",
          [](PrivateCounter& self) -> PrivateCounter& {
            self.begin();
            return self;
          },
          py::return_value_policy::reference)
      .def("__exit__", [](PrivateCounter& self, const py::args&) { self.end(); });

  py::class_<Range>(
      m, "range",
      "Names what runs inside `with rl.range('mlp'):`, for counters, profiles and Nsight Systems. A graph's "
      "replay belongs to it too: the ranges of the capture are then inside of it.")
      .def(py::init([](std::string name) {
             return Range{std::move(name), {}};
           }),
           py::arg("name"))
      .def("__enter__", by_reference(&Range::enter))
      .def("__exit__", by_reference(&Range::exit));

  py::class_<kernels::VariantInfo>(m, "Variant", R"doc(One rung of an op's ladder; `rl.variants` lists them.

Attributes
----------
name, device : str
    What `variant=` takes, and "cpu" or "cuda".
idea : str
    What this rung does differently, in one line.

Examples
--------
>>> rl.variants("gelu", "cpu")[-1].name
'v0_reference')doc")
      .def_property_readonly("name", [](const kernels::VariantInfo& self) { return self.name; })
      .def_property_readonly(
          "device", [](const kernels::VariantInfo& self) { return self.device == Device::Type::kCpu ? "cpu" : "cuda"; })
      .def_property_readonly("idea", [](const kernels::VariantInfo& self) { return self.idea; })
      .def_readonly("kernel", &kernels::VariantInfo::kernel, "The function's name, as profiles show it.")
      .def("__repr__", [](const kernels::VariantInfo& self) {
        return message("Variant(", self.device == Device::Type::kCpu ? "cpu" : "cuda", " ", self.name, ": ", self.idea,
                       ")");
      });
  m.def(
      "variants",
      [](const std::string& op, const std::optional<std::string>& device) {
        RL_CHECK(!device || device->starts_with("cpu") || device->starts_with("cuda"), "variants",
                 "device: expected \"cpu\" or \"cuda\", got \"", *device, "\"");
        std::vector<kernels::VariantInfo> found;
        for (const kernels::VariantInfo& variant : kernels::find_ladder(op).variants) {
          const char* on = variant.device == Device::Type::kCpu ? "cpu" : "cuda";
          if (!device || device->starts_with(on)) found.push_back(variant);
        }
        return found;
      },
      py::arg("op"), py::arg("device") = py::none(), kVariantsDoc);
  m.def(
      "ops",
      [] {
        std::vector<std::string> names;
        for (const kernels::LadderInfo* ladder : kernels::ladders())
          for (const char* name : kernels::op_names(*ladder)) names.push_back(name);
        std::sort(names.begin(), names.end());
        return names;
      },
      R"doc(The names of all ops that have a ladder of kernels.

Returns
-------
list of str
    In alphabetic order.

Examples
--------
>>> "matmul" in rl.ops()
True)doc");
}

}  // namespace rooflab
