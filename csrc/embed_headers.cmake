# Writes OUTPUT, a source file that holds the headers HEADERS (names separated by commas) as text.
string(REPLACE "," ";" headers "${HEADERS}")
set(items "")
foreach(header IN LISTS headers)
  file(READ "${CMAKE_CURRENT_LIST_DIR}/${header}" text)
  string(APPEND items "    {\"${header}\", R\"header(${text})header\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"kernels/fused/embedded_headers.h\"

namespace rooflab::kernels {

const EmbeddedHeader kEmbeddedHeaders[] = {
${items}};

}  // namespace rooflab::kernels
")
