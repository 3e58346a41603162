// What a node hands to its host is made of these modules' types, so whoever imports Muster sees
// them, and needs to import nothing else.
@_exported import MusterBase
@_exported import MusterCore
@_exported import MusterCrypto
@_exported import MusterMesh
@_exported import MusterWire
