# Script: writes OUTPUT, the source of ptrain::run::build_id().
# In: SOURCE_DIR, OUTPUT, VERSION. The hash covers what the command and its engine both compile.
file(GLOB_RECURSE files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/core/*.h ${SOURCE_DIR}/core/*.cc)
list(APPEND files engine/entry.h)
list(SORT files)
set(all "")
foreach(file ${files})
  file(SHA256 ${SOURCE_DIR}/${file} hash)
  string(APPEND all "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#include \"core/run/build_id.h\"

namespace ptrain::run {

std::string_view build_id() { return \"${VERSION}-${hash}\"; }

}  // namespace ptrain::run
")
